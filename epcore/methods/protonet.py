"""Prototypical networks (Snell et al. 2017)."""

from fractions import Fraction

from torch import Tensor

from epcore.backbones.conv4 import Conv4
from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods.base import EpisodicMethod


class ProtoNet(EpisodicMethod):
    """Scores are minus the squared distance to the mean of each class's support (equation 2).

    The sum over features, as in the authors' code. The backbone is Conv-4 as EPNet has it, which
    ends with a mean over positions: 64 features, where the authors' has 1600 at 84 pixels.
    """

    def __init__(self, options: EpisodicMethod.Options, pixels: int, way: int) -> None:
        super().__init__()
        self.backbone = Conv4(Fraction(1))

    def embed(self, images: Tensor) -> Tensor:
        features: Tensor = self.backbone(images)
        return features

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        differences = episodes.query[:, :, None] - episodes.class_means[:, None]
        return -differences.square().sum(dim=-1)
