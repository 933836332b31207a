"""The feature extractors of the paper, as the authors' code builds them.

Each takes images `(n, 3, height, width)` and returns features `(n, feature_size)`. `width`
multiplies every channel count and `depth` the number of blocks, so that a laptop can run the same
architecture: 1 is the paper's.
"""

from fractions import Fraction

from epcore.backbones.base import Backbone
from epcore.backbones.conv4 import Conv4
from epcore.backbones.resnet12 import ResNet12
from epcore.backbones.wide_resnet import WideResNet


def build_backbone(
    architecture: str, width: Fraction = Fraction(1), depth: Fraction = Fraction(1)
) -> Backbone:
    """The backbone of that name (`conv4`, `resnet12` or `wide-resnet`), narrowed and shortened.

    Raises:
        ValueError: if a number of channels or blocks would not be a whole number above 0. Conv-4
            and ResNet-12 have one block a stage, so their depth is 1.
    """
    if architecture == "wide-resnet":
        return WideResNet(width, depth)
    if depth != 1:
        raise ValueError(f"{architecture} has one block a stage, its depth cannot be {depth}")
    return {"conv4": Conv4, "resnet12": ResNet12}[architecture](width)


__all__ = ["Backbone", "build_backbone"]
