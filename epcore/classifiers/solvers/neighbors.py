"""The nearest neighbors of each point of an episode."""

import torch
from torch import Tensor


def neighbors(similarities: Tensor, count: int) -> Tensor:
    """Mask `(..., N, N)` of the `count` largest entries of each row; all if N <= `count`."""
    nearest = similarities.topk(min(count, similarities.shape[-1]), dim=-1).indices
    mask = torch.zeros_like(similarities, dtype=torch.bool)
    return mask.scatter_(-1, nearest, True)
