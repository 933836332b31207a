"""Which network a backbone is, at which size."""

from fractions import Fraction
from typing import Literal

from pydantic import Field

from epcore.errors import UserError
from epcore.settings import Ratio, Settings

Architecture = Literal[
    "conv4", "resnet12", "wide-resnet", "resnet10", "resnet10-relu", "resnet18", "resnet34"
]


class BackboneConfig(Settings):
    """A backbone as a stage builds it; see `epcore.backbones`."""

    architecture: Architecture = Field(description="the network, a name of epcore.backbones")
    width: Ratio = Field(
        default=Fraction(1), description="what its numbers of channels are multiplied by"
    )
    depth: Ratio = Field(
        default=Fraction(1), description="what its number of blocks is multiplied by"
    )

    def __str__(self) -> str:
        return f"{self.architecture} of width {self.width} and depth {self.depth}"


Precision = Literal["fp32", "tf32", "bf16"]
# The smallest number of channels at width 1; all others are multiples of it. A backbone that is
# not here checks itself when it is built.
CHANNELS = {
    **dict.fromkeys(("conv4", "resnet10", "resnet10-relu", "resnet12", "resnet18", "resnet34"), 64),
    "wide-resnet": 80,
}
# Backbones with `maps`, of which rotations are learned.
WITH_MAPS = ("resnet10", "resnet10-relu", "resnet18", "resnet34")
# The fewest pixels a side that leave a map to pool; the other backbones take any.
SMALLEST = {"conv4": 16}


def check_pixels(backbone: BackboneConfig, pixels: int, location: str) -> None:
    """Raises `UserError` if images of `pixels` pixels a side are too small, naming their key."""
    smallest = SMALLEST.get(backbone.architecture, 1)
    if pixels < smallest:
        raise UserError(
            f"{location}: {backbone.architecture} needs images of at least {smallest} pixels "
            f"and is given {pixels}",
            "raise image_size of the data set, or leave the backbone out",
        )


def check_sizes(backbone: BackboneConfig, location: str) -> None:
    """Raises `UserError` unless channels and blocks are whole numbers; `location` names them."""
    if (channels := CHANNELS.get(backbone.architecture)) is None:
        return
    _check_ratio(backbone.width, channels, "channels", f"{location}, width")
    if backbone.architecture == "wide-resnet":
        _check_ratio(backbone.depth, 4, "blocks", f"{location}, depth")
    elif backbone.depth != 1:
        raise UserError(f"{location}, depth: only the wide ResNet has one", "delete the key")


def _check_ratio(ratio: Fraction, count: int, what: str, location: str) -> None:
    if (count * ratio).denominator != 1:
        raise UserError(
            f"{location}: {ratio} of {count} {what} is not a whole number", "choose another ratio"
        )
