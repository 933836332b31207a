"""Prototype rectification (Liu et al. 2020): class means of the support and the queries."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from epcore.backbones.cosine import cosine_logits
from epcore.classifiers.episodes import EpisodeBatch

Weighting = Literal["members", "classes", "classes-by-count"]

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
    weighting: Weighting,
    scale: float = SCALE,
    confident: int | None = None,
) -> Tensor:
    """Weighted means `(..., way, D)` of each class's members among support and queries.

    Members of a class k are its support and the queries whose cosine with the class mean m_k is
    the highest of all classes. `confident` keeps that many queries of a class, those that the
    softmax of `scale * cosine` over the classes is surest of. What multiplies a member x_j:

    - `members`: the softmax of `scale * cos(x_j, m_k)` over the members (BD-CSPN, equation 5);
    - `classes`: the softmax over the classes, divided by the sum of the members' weights;
    - `classes-by-count`: the same, divided by the number of members (LaplacianShot's code).
    """
    images = torch.cat([episodes.support, queries], dim=-2)
    logits = cosine_logits(images, episodes.class_means, scale)  # (..., N, way)
    probabilities = logits.softmax(dim=-1)
    of_queries = probabilities[..., episodes.labeled :, :]
    assigned = functional.one_hot(of_queries.argmax(dim=-1), episodes.way).to(images.dtype)
    if confident is not None and confident < episodes.queries:
        best = (assigned * of_queries).topk(confident, dim=-2).indices
        assigned = assigned * torch.zeros_like(assigned).scatter_(-2, best, 1)
    labels = episodes.support_labels.expand(*images.shape[:-2], -1, -1)
    members = torch.cat([labels, assigned], dim=-2)  # (..., N, way), 1 or 0
    if weighting == "members":
        weights = logits.masked_fill(members == 0, -torch.inf).softmax(dim=-2)
    else:
        weights = members * probabilities
        class_weights = members if weighting == "classes-by-count" else weights
        weights = weights / class_weights.sum(dim=-2, keepdim=True)
    return weights.mT @ images
