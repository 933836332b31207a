"""ResNet-10 and ResNet-18 with cosine classifiers in mind: no ReLU after the last block."""

from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from epcore.backbones.base import Backbone, scaled


class _Block(nn.Module):
    """Two 3x3 convolutions; 1x1 shortcut with BatchNorm where the number of channels changes."""

    def __init__(self, inputs: int, outputs: int, stride: int, activated: bool) -> None:
        super().__init__()
        self.activated = activated
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        total: Tensor = self.path(x) + self.shortcut(x)
        return torch.relu(total) if self.activated else total


class ResNet(Backbone):
    """7x7 stem of stride 2, max-pool, four stages of 64, 128, 256 and 512 channels, global mean.

    Features are signed: the last block has no ReLU, so that they may point away from a class's
    weights (Gidaris and Komodakis, CVPR 2018, section 3.2). All else is torchvision's ResNet of
    BasicBlocks, by a test; that one has neither signed features nor fewer channels.
    """

    blocks_per_stage: ClassVar[int]

    def __init__(self, width: Fraction = Fraction(1)) -> None:
        super().__init__()
        stages = [scaled(channels, width) for channels in (64, 128, 256, 512)]
        self.feature_size = stages[-1]
        self.stem = nn.Sequential(
            nn.Conv2d(3, stages[0], 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(stages[0]),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.ReLU(inplace=True),  # on a quarter of the positions, as in ResNet-12
        )
        blocks = []
        for stage, (inputs, outputs) in enumerate(pairwise([stages[0], *stages])):
            for number in range(self.blocks_per_stage):
                first = number == 0
                last = stage == len(stages) - 1 and number == self.blocks_per_stage - 1
                stride = 2 if first and stage > 0 else 1
                blocks.append(_Block(inputs if first else outputs, outputs, stride, not last))
        self.blocks = nn.Sequential(*blocks)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.blocks(self.stem(images)).mean(dim=(-2, -1))
        return features


class ResNet10(ResNet):
    """One block a stage: 512-d features, 4.9 million parameters at width 1 (code of wDAE-GNN)."""

    blocks_per_stage = 1


class ResNet18(ResNet):
    """Two blocks a stage: 512-d features, 11.2 million parameters at width 1 (the paper's text)."""

    blocks_per_stage = 2
