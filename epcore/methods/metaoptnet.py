"""MetaOptNet (Lee et al. 2019): a network trained through a convex classifier of the support."""

from fractions import Fraction
from typing import Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor, nn

from epcore.backbones.base import scaled
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.crammer_singer import differentiable_dual_coefficients
from epcore.methods._encoders import map_size
from epcore.methods._resnet12 import metaoptnet_encoder
from epcore.methods.base import EpisodicMethod, query_classes
from epcore.propagation import at_least_float32
from epcore.settings import Probability, Ratio, Settings


class MetaOptNet(EpisodicMethod):
    """Scores of a query x are `scale x X^T A`, where X is the support and `scale` is learned.

    svm: A are the dual coefficients of Crammer and Singer's machine on the support (equation 9 of
    the paper); the authors' code adds 1 to the diagonal of its kernel. ridge: `A = 2 (X X^T +
    penalty I)^-1 Y`. The network is a ResNet-12 whose last map is not averaged: 16,000 features at
    84 pixels. Support and queries are batches of their own in training, as in the authors' code.
    """

    class Options(Settings):
        """The classifier, and how the network is regularized."""

        head: Literal["svm", "ridge"] = Field(default="svm", description="the convex classifier")
        cost: PositiveFloat = Field(default=0.1, description="of svm: weight of the summed losses")
        kernel_ridge: NonNegativeFloat = Field(
            default=1.0, description="of svm: added to the diagonal of the kernel; 0 in the paper"
        )
        penalty: PositiveFloat = Field(default=50.0, description="of ridge: weight of the penalty")
        smoothing: Probability = Field(
            default=0.1, description="share of a query's label that the other classes have"
        )
        width: Ratio = Field(default=Fraction(1), description="of the channels of the network")
        dropped: Probability = Field(default=0.1, description="share of the maps that is dropped")
        square: PositiveInt = Field(
            default=5,
            description="side of the squares that are dropped from the last two maps, if the last "
            "is as large",
        )

    separate_batches = True

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__()
        self.options = options
        channels = tuple(scaled(count, options.width) for count in (64, 160, 320, 640))
        square = min(options.square, max(pixels // 16, 1))  # the side of the last map
        self.encoder = metaoptnet_encoder(channels, options.dropped, square)
        map_size(self.encoder, pixels)
        self.scale = nn.Parameter(torch.ones(()))

    def embed(self, images: Tensor) -> Tensor:
        vectors: Tensor = self.encoder(images).flatten(1)
        return vectors

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        support = episodes.support.double()
        kernel = support @ support.mT  # (E, n, n)
        identity = torch.eye(episodes.labeled, dtype=kernel.dtype, device=kernel.device)
        labels = episodes.support_labels.double()
        if self.options.head == "svm":
            kernel = kernel + self.options.kernel_ridge * identity
            dual = differentiable_dual_coefficients(kernel, labels, self.options.cost)
        else:
            factor = torch.linalg.cholesky(kernel + self.options.penalty * identity)
            dual = 2 * torch.cholesky_solve(labels, factor)
        weights = (support.mT @ dual).to(episodes.points.dtype)  # (E, D, way)
        return self.scale * (episodes.query @ weights)

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        """Cross-entropy; the true class has `1 - smoothing`, the others share the rest evenly."""
        logs = at_least_float32(self.scores(episodes)).log_softmax(dim=-1)  # (E, queries, way)
        right = logs.gather(-1, query_classes(episodes)[..., None]).squeeze(-1)  # (E, queries)
        wrong = (logs.sum(dim=-1) - right) / (episodes.way - 1)  # their mean
        smoothing = self.options.smoothing
        return -((1 - smoothing) * right + smoothing * wrong).mean()
