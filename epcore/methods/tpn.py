"""Transductive propagation networks (Liu et al. 2019)."""

from fractions import Fraction

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.base import scaled
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.distances import squared_distances
from epcore.classifiers.solvers.neighbors import propagate_labels
from epcore.methods._encoders import block, map_size
from epcore.methods._resnet12 import tadam_encoder
from epcore.methods.base import EpisodicMethod, query_classes
from epcore.propagation import at_least_float32
from epcore.settings import Probability, Ratio, Settings


class Tpn(EpisodicMethod):
    """Label propagation on a graph whose bandwidth a network learns (section 3.2).

    A network reads a number s from each image's map, by which its features are divided. The graph
    has `W_ij = exp(-|x_i / s_i - x_j / s_j|^2 / (2 D))`, D features, where one image is among the
    nearest of the other, itself included; scores are `(I - alpha S)^-1 Y` with
    `S = D^-1/2 W D^-1/2`. The loss is the cross-entropy of support and queries (authors' code).
    """

    class Options(Settings):
        """Settings of the graph."""

        alpha: Probability = Field(default=0.99, description="strength of the propagation")
        neighbors: PositiveInt = Field(
            default=20, description="how many neighbors each image has, itself included"
        )

    transductive = True
    unlabeled = True

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__()
        self.options = options
        self.encoder = self._encoder()
        channels, side = map_size(self.encoder, pixels)
        small = ((side + 2) // 2 + 2) // 2  # behind two pools of stride 2 with padding 1
        self.width = nn.Sequential(
            *_narrowing(channels, 64),
            *_narrowing(64, 1),
            nn.Flatten(),
            nn.Linear(small**2, 8),
            nn.ReLU(),
            nn.Linear(8, 1),
        )
        nn.init.ones_(self.width[-1].bias)  # type: ignore[arg-type]

    def _encoder(self) -> nn.Sequential:
        return nn.Sequential(
            block(3, 64, 1, 0), block(64, 64, 1, 0), block(64, 64, 1, 0), block(64, 64, 1, 0)
        )

    def embed(self, images: Tensor) -> Tensor:
        """Features, each divided by the number that the image's map says."""
        maps = self.encoder(images)
        widths = at_least_float32(self.width(maps))
        points: Tensor = at_least_float32(maps).flatten(1) / (
            widths + torch.finfo(torch.float64).eps
        )
        return points

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        return self._propagated(episodes)[:, episodes.labeled :][:, : episodes.queries]

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        support = episodes.support_labels.argmax(dim=-1).expand(len(episodes.points), -1)
        expected = torch.cat([support, query_classes(episodes)], dim=1)
        scores = self._propagated(episodes)[:, : expected.shape[1]]
        return functional.cross_entropy(scores.flatten(0, 1), expected.flatten())

    def _propagated(self, episodes: EpisodeBatch) -> Tensor:
        """Scores `(E, N, way)` of all images, in float64 inside."""
        points = episodes.points.double()
        squared = squared_distances(points, points)
        weights = (-squared / (2 * episodes.points.shape[-1])).exp()
        options = self.options
        return propagate_labels(weights, options.neighbors, options.alpha, episodes.node_labels)


class TpnResNet12(Tpn):
    """TPN on the residual network of TADAM, whose map of 512 channels the width is read from.

    No code of it was published. With 8,284,608 weights of convolutions it has the 8284K that the
    paper prints.
    """

    class Options(Tpn.Options):
        """Settings of the graph, and the size of the network."""

        width: Ratio = Field(default=Fraction(1), description="of the channels of the network")

    options: Options

    def _encoder(self) -> nn.Sequential:
        channels = (scaled(count, self.options.width) for count in (64, 128, 256, 512))
        return tadam_encoder(tuple(channels))


def _narrowing(inputs: int, outputs: int) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2, padding=1),
    ]
