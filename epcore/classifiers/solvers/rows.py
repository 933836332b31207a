"""Rows of each episode by their places, which differ from episode to episode."""

import torch
from torch import Tensor
from torch.nn import functional


def rows_of(values: Tensor, places: Tensor) -> Tensor:
    """`(..., m, k)` from values `(..., n, k)` at places `(..., m)`.

    As `gather` over all k, but ten times as fast.
    """
    n, k = values.shape[-2:]
    starts = torch.arange(0, values.shape[:-1].numel(), n, device=places.device)
    return functional.embedding(
        places + starts.reshape(*values.shape[:-2], 1), values.reshape(-1, k)
    )
