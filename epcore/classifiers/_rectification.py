"""Prototype rectification (Liu et al. 2020): class means of the support and the queries."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from epcore.classifiers._episodes import EpisodeBatch

# The paper's epsilon: what multiplies the cosine of an image and a class mean.
SCALE = 10.0


def shifted_queries(episodes: EpisodeBatch) -> Tensor:
    """The queries `(..., queries, D)` moved so that their mean is that of the support."""
    means = (part.mean(dim=-2, keepdim=True) for part in (episodes.support, episodes.query))
    support_mean, query_mean = means
    return episodes.query + support_mean - query_mean


def rectified_means(
    episodes: EpisodeBatch,
    queries: Tensor,
    scale: float = SCALE,
    confident: int | None = None,
    divided_by: Literal["weights", "members"] = "weights",
) -> Tensor:
    """Weighted means `(..., way, D)` of each class's members among support and queries.

    Members are the class's support and the queries whose cosine with its mean is the highest. The
    weight of a member is its probability of the class, the softmax of `scale * cosine`. With
    `confident`, only that many queries of a class are members, those of the greatest weight.
    Sums are divided by the weights of the members or, shorter, by how many they are.
    """
    images = torch.cat([episodes.support, queries], dim=-2)
    probabilities = cosines(images, episodes.class_means).mul(scale).softmax(dim=-1)
    of_queries = probabilities[..., episodes.labeled :, :]
    assigned = functional.one_hot(of_queries.argmax(dim=-1), episodes.way).to(images.dtype)
    if confident is not None and confident < episodes.queries:
        best = (assigned * of_queries).topk(confident, dim=-2).indices
        assigned = assigned * torch.zeros_like(assigned).scatter_(-2, best, 1)
    labels = episodes.support_labels.expand(*images.shape[:-2], -1, -1)
    members = torch.cat([labels, assigned], dim=-2)
    weights = members * probabilities
    counted = weights if divided_by == "weights" else members
    return weights.mT @ images / counted.sum(dim=-2)[..., None]


def cosines(images: Tensor, means: Tensor) -> Tensor:
    """Cosine of each image and each class mean: `(..., N, way)`."""
    return functional.normalize(images, dim=-1) @ functional.normalize(means, dim=-1).mT
