"""What every backbone has."""

from fractions import Fraction

from torch import nn


class Backbone(nn.Module):
    """Maps images `(n, 3, height, width)` to features `(n, feature_size)`."""

    feature_size: int

    @property
    def stages(self) -> list[nn.Module]:
        """For each resolution of the maps the module that puts out the last of them, in order."""
        raise NotImplementedError


def scaled(count: int, ratio: Fraction, what: str = "channels") -> int:
    """`count * ratio`, which must be a whole number above 0."""
    product = count * ratio
    if product.denominator != 1 or product < 1:
        raise ValueError(f"a ratio of {ratio} does not divide {count} {what} into whole ones")
    return product.numerator


def parameter_count(module: nn.Module) -> int:
    """Number of trainable parameters."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
