"""The feature extractors of the paper, as the authors' code builds them.

Those of other publications are in resnet.py. Each takes images `(n, 3, height, width)` and returns
features `(n, feature_size)`. `width` multiplies every channel count and `depth` the number of
blocks, so that a laptop can run the same architecture: 1 is the paper's.
"""

from fractions import Fraction

from epcore.backbones.base import Backbone
from epcore.backbones.conv4 import Conv4
from epcore.backbones.resnet12 import ResNet12
from epcore.backbones.wide_resnet import WideResNet

_PLAIN = {"conv4": Conv4, "resnet12": ResNet12}
_BLOCKS = {
    "resnet10": (1, 1, 1, 1),
    "resnet10-relu": (1, 1, 1, 1),
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
}
_SIGNED = ("resnet10", "resnet18")


def build_backbone(
    architecture: str, width: Fraction = Fraction(1), depth: Fraction = Fraction(1)
) -> Backbone:
    """The backbone of that name, an `Architecture`.

    Raises:
        ValueError: if a number of channels or blocks would not be a whole number above 0. Only
            the wide ResNet can have another depth than 1.
    """
    if architecture == "wide-resnet":
        return WideResNet(width, depth)
    if depth != 1:
        raise ValueError(f"only the wide ResNet has a depth: that of {architecture} is not {depth}")
    if architecture in _BLOCKS:
        from epcore.backbones.resnet import ResNet  # imports torchvision, which takes seconds

        return ResNet(_BLOCKS[architecture], width, signed=architecture in _SIGNED)
    return _PLAIN[architecture](width)
