"""ResNet-12 of the authors' code."""

from fractions import Fraction
from itertools import pairwise

import torch
from torch import Tensor, nn

from epcore.backbones.base import Backbone, scaled


class _Block(nn.Module):
    """Three 3x3 convolutions beside a 1x1 shortcut, then a 3x3 max-pool of stride 2, and ReLU.

    ReLU before the pool would give the same values and gradients, from four times as many.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for number, channels in enumerate((inputs, outputs, outputs), start=1):
            layers += [
                nn.Conv2d(channels, outputs, 3, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
            ]
            if number < 3:
                layers += [nn.ReLU(inplace=True), nn.Dropout2d(0.1)]
        self.path = nn.Sequential(*layers)
        # With bias and without BatchNorm, as the authors have it.
        self.shortcut = nn.Conv2d(inputs, outputs, 1)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = torch.relu(self.pool(self.path(x) + self.shortcut(x)))
        return out


class ResNet12(Backbone):
    """Four residual blocks of 64, 128, 256 and 512 channels, global average pool, BatchNorm, ReLU.

    512-d features and 7,996,864 parameters at width 1; the paper's 7989K counts the weights of
    the convolutions only (7,989,120). Plain ReLU, where many ResNet-12 have a leaky one.
    """

    def __init__(self, width: Fraction = Fraction(1)) -> None:
        super().__init__()
        sizes = [3] + [scaled(channels, width) for channels in (64, 128, 256, 512)]
        self.feature_size = sizes[-1]
        self.blocks = nn.Sequential(
            *(_Block(inputs, outputs) for inputs, outputs in pairwise(sizes))
        )
        self.norm = nn.BatchNorm1d(self.feature_size)

    @property
    def stages(self) -> list[nn.Module]:
        return list(self.blocks)

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.norm(self.blocks(images).mean(dim=(-2, -1))))
