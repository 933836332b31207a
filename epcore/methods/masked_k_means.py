"""Masked soft k-means of networks trained for it (Ren et al. 2018)."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.distances import squared_distances
from epcore.classifiers.solvers.soft_k_means import clustered_means
from epcore.methods.protonet import ProtoNet


class MaskedKMeans(ProtoNet):
    """Prototypical networks whose class means take in unlabeled images (section 3.1.3).

    Image j weighs `softmax_k(-|x_j - c_k|^2)` in the mean of class k, times a mask
    `sigmoid((beta_k - d_jk) gamma_k)`, where `d_jk` is its squared distance to the class's mean
    divided by the mean of all images' distances. A network tells beta and gamma of each class from
    the least and the largest d, their variance, skewness and kurtosis. As in the authors' code
    there is one step, and the mask counts twice. An episode without unlabeled images is that of a
    prototypical network.
    """

    class Options(ProtoNet.Options):
        """How often the mask counts."""

        mask_power: Literal[1, 2] = Field(
            default=2, description="the paper multiplies by the mask once, the authors' code twice"
        )

    unlabeled = True

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__(options, pixels, way)
        self.options = options
        first, last = nn.Linear(5, 20), nn.Linear(20, 2)  # theirs has an output for further steps
        for layer in (first, last):
            nn.init.trunc_normal_(layer.weight, std=0.01, a=-0.02, b=0.02)
            nn.init.zeros_(layer.bias)
        self.border = nn.Sequential(first, nn.Tanh(), last)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        if not episodes.unlabeled:
            return super().scores(episodes)
        means = clustered_means(episodes, 1, self._weights)
        return -squared_distances(episodes.query, means)

    def _weights(self, distances: Tensor) -> Tensor:
        """Weights `(E, n, way)` of unlabeled images at these squared distances to the means."""
        tiny = torch.finfo(distances.dtype).tiny
        relative = distances / distances.mean(dim=1, keepdim=True).clamp_min(tiny)
        beta, gamma = self.border(shape_of(relative).detach()).exp().unbind(dim=-1)  # (E, way)
        masks = ((beta[:, None] - relative) * gamma[:, None]).sigmoid()
        weights: Tensor = (-distances).softmax(dim=-1) * masks**self.options.mask_power
        return weights


def shape_of(values: Tensor) -> Tensor:
    """Of values `(E, n, way)`, over n: `(E, way, 5)`.

    The least, the largest, the variance, the skewness and the excess kurtosis.
    """
    variance, mean = torch.var_mean(values, dim=1, correction=0)
    variance = variance.clamp_min(torch.finfo(values.dtype).tiny)
    standard = (values - mean[:, None]) / variance.sqrt()[:, None]
    return torch.stack(
        [
            values.amin(dim=1),
            values.amax(dim=1),
            variance,
            (standard**3).mean(dim=1),
            (standard**4).mean(dim=1) - 3,
        ],
        dim=-1,
    )
