"""Matching networks (Vinyals et al. 2016)."""

from fractions import Fraction

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor, nn

from epcore.backbones.conv4 import Conv4
from epcore.classifiers.cosine_matching import log_attention
from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods.base import EpisodicMethod
from epcore.settings import Settings


class Matching(EpisodicMethod):
    """A query attends to the support by the softmax of scaled cosines (equations 1 and 2).

    The probability of a class is the attention that its images get, scores are its logarithm. There
    are no full context embeddings, of which no official code exists. The scale is learned, as in
    the code of Gidaris and Komodakis (2018).
    """

    class Options(Settings):
        """How it begins."""

        scale: PositiveFloat = Field(default=10.0, description="of the cosines, before training")

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__()
        self.backbone = Conv4(Fraction(1))
        self.scale = nn.Parameter(torch.tensor(options.scale))

    def embed(self, images: Tensor) -> Tensor:
        features: Tensor = self.backbone(images)
        return features

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        return log_attention(episodes, self.scale)
