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


def squared_distances(points: Tensor, others: Tensor) -> Tensor:
    """Squared distance of each point to each of the others: `(..., N, M)`.

    points `(..., N, D)`, others `(..., M, D)`. Through products of points that are centered on the
    mean of the others: memory N * M, never N * M * D. Distances that rounding cannot tell from zero
    are exactly zero.
    """
    center = others.mean(dim=-2, keepdim=True)
    points, others = points - center, others - center
    norms = (points.square().sum(dim=-1), others.square().sum(dim=-1))
    sums = norms[0][..., :, None] + norms[1][..., None, :]  # (..., N, M)
    distances = sums - 2 * points @ others.mT
    zero = distances <= 8 * torch.finfo(distances.dtype).eps * sums
    return distances.masked_fill(zero, 0)
