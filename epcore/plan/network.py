"""What a backbone computes for an image, and whether its size exists, without building it."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from epcore.errors import UserError
from epcore.plan.models import Backbone


@dataclass(frozen=True)
class Effort:
    """Of one forward pass of one image, convolutions only.

    multiply_adds: products that are summed. values: numbers that the convolutions put out, which
    stand for the work of the layers around them (BatchNorm, ReLU, pooling), bound by memory.
    weights: of the convolutions, nearly all parameters.
    """

    multiply_adds: int = 0
    values: int = 0
    weights: int = 0

    def __add__(self, other: "Effort") -> "Effort":
        return Effort(
            self.multiply_adds + other.multiply_adds,
            self.values + other.values,
            self.weights + other.weights,
        )


def check_sizes(backbone: Backbone, where: str) -> None:
    """Raises `UserError` unless its numbers of channels and blocks are whole; `where` has its keys.

    All of its numbers of channels are multiples of the smallest. A network that is not counted
    here checks itself when it is built.
    """
    if (count := _COUNTS.get(backbone.architecture)) is None:
        return
    _check_ratio(backbone.width, count.channels, "channels", f"{where}, width")
    if backbone.architecture == "wide-resnet":
        _check_ratio(backbone.depth, 4, "blocks", f"{where}, depth")
    elif backbone.depth != 1:
        raise UserError(f"{where}, depth: only the wide ResNet has one; delete the key")


def _check_ratio(ratio: Fraction, count: int, what: str, where: str) -> None:
    if (count * ratio).denominator != 1:
        raise UserError(
            f"{where}: {ratio} of {count} {what} is not a whole number; choose another ratio"
        )


def effort(backbone: Backbone, pixels: int) -> Effort:
    """Of an image of `pixels` x `pixels`; the networks are those of `epcore.backbones`."""
    return _count(backbone).effort(backbone, pixels)


def feature_size(backbone: Backbone) -> int:
    """Dimensions of its features."""
    return int(_count(backbone).features * backbone.width)


def _count(backbone: Backbone) -> "_Count":
    if backbone.architecture not in _COUNTS:
        raise UserError(
            f"the cost of backbone {backbone.architecture} is not known; add it to _COUNTS in "
            "epcore/plan/network.py"
        )
    return _COUNTS[backbone.architecture]


def _convolution(pixels: int, inputs: int, outputs: int, kernel: int = 3) -> Effort:
    """A square convolution that puts out `pixels` x `pixels`."""
    values, weights = pixels**2 * outputs, inputs * outputs * kernel**2
    return Effort(pixels**2 * weights, values, weights)


def _halved(pixels: int) -> int:
    """Pixels after a 3x3 kernel of stride 2 and padding 1."""
    return (pixels + 1) // 2


def _conv4(backbone: Backbone, pixels: int) -> Effort:
    total, inputs, outputs = Effort(), 3, int(64 * backbone.width)
    for _ in range(4):
        total += _convolution(pixels, inputs, outputs)
        inputs, pixels = outputs, pixels // 2
    return total


def _resnet12(backbone: Backbone, pixels: int) -> Effort:
    total, inputs = Effort(), 3
    for channels in (64, 128, 256, 512):
        outputs = int(channels * backbone.width)
        total += _convolution(pixels, inputs, outputs)
        total += _convolution(pixels, outputs, outputs) + _convolution(pixels, outputs, outputs)
        total += _convolution(pixels, inputs, outputs, kernel=1)
        inputs, pixels = outputs, _halved(pixels)
    return total


def _wide_resnet(backbone: Backbone, pixels: int) -> Effort:
    inputs = int(80 * backbone.width)
    total = _convolution(pixels, 3, inputs)
    for channels in (160, 320, 640):
        outputs, pixels = int(channels * backbone.width), _halved(pixels)
        total += _convolution(pixels, inputs, outputs) + _convolution(pixels, outputs, outputs)
        total += _convolution(pixels, inputs, outputs, kernel=1)
        for _ in range(int(4 * backbone.depth) - 1):
            total += _convolution(pixels, outputs, outputs)
            total += _convolution(pixels, outputs, outputs)
        inputs = outputs
    return total


def _resnet(backbone: Backbone, pixels: int, blocks: int) -> Effort:
    inputs, pixels = int(64 * backbone.width), _halved(pixels)
    total, pixels = _convolution(pixels, 3, inputs, kernel=7), _halved(pixels)
    for channels in (64, 128, 256, 512):
        outputs = int(channels * backbone.width)
        if channels > 64:
            pixels = _halved(pixels)
            total += _convolution(pixels, inputs, outputs, kernel=1)
        total += _convolution(pixels, inputs, outputs)
        for _ in range(2 * blocks - 1):
            total += _convolution(pixels, outputs, outputs)
        inputs = outputs
    return total


@dataclass(frozen=True)
class _Count:
    """effort: of a backbone and an image's pixels. features: their dimensions at width 1.
    channels: the smallest number of them at width 1.
    """

    effort: Callable[[Backbone, int], Effort]
    features: int
    channels: int = 64


_COUNTS = {
    "conv4": _Count(_conv4, 64),
    "resnet12": _Count(_resnet12, 512),
    "wide-resnet": _Count(_wide_resnet, 640, channels=80),
    "resnet10": _Count(partial(_resnet, blocks=1), 512),
    "resnet18": _Count(partial(_resnet, blocks=2), 512),
}
