"""WRN-28-10 of the authors' code."""

from fractions import Fraction

import torch
from torch import Tensor, nn

from epcore.backbones.base import Backbone, scaled


class _Block(nn.Module):
    """Two 3x3 convolutions, activation after the sum; 1x1 shortcut where the shape changes.

    All three convolutions start as Kaiming normal draws, the shortcut's too (official code).
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Dropout2d(0.1),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.path(x) + self.shortcut(x))


class WideResNet(Backbone):
    """Stem of 80 channels, three groups of four blocks of 160, 320 and 640 channels.

    Stride 2 in every group, global average pool, BatchNorm, ReLU. 640-d features and 36,578,320
    parameters at width 1; the paper's 37582K could not be derived from any variant. It differs
    from the usual WRN-28-10 by its stem (80 channels, not 16), its strides and by activating
    after the sum. `depth` multiplies the four blocks of each group.
    """

    def __init__(self, width: Fraction = Fraction(1), depth: Fraction = Fraction(1)) -> None:
        super().__init__()
        stem, *groups = (scaled(channels, width) for channels in (80, 160, 320, 640))
        blocks_per_group = scaled(4, depth, "blocks")
        self.feature_size = groups[-1]
        self.stem = nn.Sequential(
            nn.Conv2d(3, stem, 3, padding=1, bias=False), nn.BatchNorm2d(stem), nn.ReLU(True)
        )
        blocks: list[nn.Module] = []
        inputs = stem
        for outputs in groups:
            blocks += [_Block(inputs, outputs, 2)]
            blocks += [_Block(outputs, outputs, 1) for _ in range(blocks_per_group - 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm1d(self.feature_size)

    @property
    def stages(self) -> list[nn.Module]:
        per_group = len(self.blocks) // 3
        return [self.blocks[(group + 1) * per_group - 1] for group in range(3)]

    def forward(self, images: Tensor) -> Tensor:
        features = self.blocks(self.stem(images)).mean(dim=(-2, -1))
        return torch.relu(self.norm(features))
