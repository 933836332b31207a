"""The nearest neighbors of each point of an episode, and label propagation on their graph."""

import torch
from torch import Tensor


def neighbors(similarities: Tensor, count: int) -> Tensor:
    """Mask `(..., N, N)` of the `count` largest entries of each row; all if N <= `count`."""
    nearest = similarities.topk(min(count, similarities.shape[-1]), dim=-1).indices
    mask = torch.zeros_like(similarities, dtype=torch.bool)
    return mask.scatter_(-1, nearest, True)


def propagate_labels(weights: Tensor, count: int, alpha: float, labels: Tensor) -> Tensor:
    """Scores `(I - alpha S)^-1 Y` `(..., N, way)` of labels Y on the graph of nearest neighbors.

    S is `D^-1/2 W D^-1/2`. W has the weights `(..., N, N)` of the pairs of which one is among the
    `count` nearest of the other; each point is among its own, so that no degree is zero.
    """
    is_neighbor = neighbors(weights, count)
    graph = weights * (is_neighbor | is_neighbor.mT)
    scaling = graph.sum(dim=-1).rsqrt()  # (..., N)
    normalized = scaling[..., :, None] * graph * scaling[..., None, :]
    identity = torch.eye(graph.shape[-1], dtype=graph.dtype, device=graph.device)
    factor = torch.linalg.cholesky(identity - alpha * normalized)
    scores: Tensor = torch.cholesky_solve(labels.to(graph.dtype), factor)
    return scores.to(labels.dtype)
