"""Squared Euclidean distances without cancellation, wherever the features lie."""

from dataclasses import replace

import torch
from torch import Tensor

from epcore.classifiers.episodes import EpisodeBatch


def centered(episodes: EpisodeBatch) -> EpisodeBatch:
    """Episodes whose points are moved so that the mean of the support is zero.

    Distances stay what they are, and means and products of small numbers are exact to more digits.
    """
    center = episodes.support.mean(dim=-2, keepdim=True)
    return replace(episodes, points=episodes.points - center)


def squared_distances(points: Tensor, centers: Tensor) -> Tensor:
    """Squared distance of each point to each center: `(..., N, M)`.

    points `(..., N, D)`, centers `(..., M, D)`. Both are shifted so that the mean of the centers is
    zero, and the distances come from inner products: memory N * M, never N * M * D. Distances that
    rounding cannot tell from zero are exactly zero.
    """
    center = centers.mean(dim=-2, keepdim=True)
    points, centers = points - center, centers - center
    norms = (points.square().sum(dim=-1), centers.square().sum(dim=-1))
    sums = norms[0][..., :, None] + norms[1][..., None, :]  # (..., N, M)
    distances = sums - 2 * points @ centers.mT
    zero = distances <= 8 * torch.finfo(distances.dtype).eps * sums
    return distances.masked_fill(zero, 0)
