"""ResNet-10, 18 and 34, with or without the ReLU after the last block."""

from fractions import Fraction
from itertools import pairwise

from torch import Tensor, nn

from epcore.backbones.base import Backbone, scaled
from epcore.vision import BasicBlock


class SignedBlock(BasicBlock):  # type: ignore[misc]  # torchvision has no types
    """A basic block without the ReLU after the sum."""

    def forward(self, x: Tensor) -> Tensor:
        residual: Tensor = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return residual + (x if self.downsample is None else self.downsample(x))


class ResNet(Backbone):
    """7x7 stem of stride 2, max-pool, four stages of 64, 128, 256 and 512 channels, global mean.

    One block in each stage is ResNet-10: 512-d features, 4.9 million parameters at width 1 (code of
    wDAE-GNN); two are ResNet-18, 11.2 million parameters (the paper's text); 3, 4, 6 and 3 are
    ResNet-34, 21.3 million parameters (Discriminative k-shot).

    Features are signed: the last block has no ReLU, so that they may point away from a class's
    weights (Gidaris and Komodakis, CVPR 2018, section 3.2), unless `signed` is false. All else is
    torchvision's ResNet, which has neither signed features nor fewer channels; its blocks are used.
    """

    def __init__(
        self, blocks: tuple[int, ...], width: Fraction = Fraction(1), signed: bool = True
    ) -> None:
        super().__init__()
        stages = [scaled(channels, width) for channels in (64, 128, 256, 512)]
        self.feature_size = stages[-1]
        self.stem = nn.Sequential(
            nn.Conv2d(3, stages[0], 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(stages[0]),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.ReLU(inplace=True),  # on a quarter of the positions, as in ResNet-12
        )
        self.blocks = nn.Sequential()
        for stage, (inputs, outputs) in enumerate(pairwise([stages[0], *stages])):
            for number in range(blocks[stage]):
                last = stage == len(stages) - 1 and number == blocks[stage] - 1
                kind = SignedBlock if signed and last else BasicBlock
                self.blocks.append(_block(kind, outputs if number else inputs, outputs))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, images: Tensor) -> Tensor:
        return self.maps(images).mean(dim=(-2, -1))

    def maps(self, images: Tensor) -> Tensor:
        """The last maps `(n, feature_size, h, w)`, whose mean the features are."""
        maps: Tensor = self.blocks(self.stem(images))
        return maps


def _block(kind: type[nn.Module], inputs: int, outputs: int) -> nn.Module:
    """A residual block; it halves the feature map where it changes the number of channels."""
    if inputs == outputs:
        return kind(inputs, outputs)
    convolution = nn.Conv2d(inputs, outputs, 1, stride=2, bias=False)
    return kind(inputs, outputs, 2, nn.Sequential(convolution, nn.BatchNorm2d(outputs)))
