"""The prototypical classifier (Snell et al. 2017), which the ablation puts in LP's place."""

import math

from torch import Tensor


def prototype_logits(support: Tensor, query: Tensor) -> Tensor:
    """Logits `(..., Q, way)`: minus squared distances to the classes' mean support embeddings.

    support `(..., way, shot, D)`, query `(..., Q, D)`. The distance is divided by sqrt(D), as in
    the authors' first published code; that scales the loss and changes no prediction.
    """
    prototypes = support.mean(dim=-2)
    differences = query[..., :, None, :] - prototypes[..., None, :, :]
    return -differences.square().sum(dim=-1) / math.sqrt(query.shape[-1])
