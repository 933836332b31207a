"""The cosine classifier (Gidaris and Komodakis, CVPR 2018, section 3.2)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


def cosine_logits(features: Tensor, weights: Tensor, scale: Tensor | float) -> Tensor:
    """`scale * cos(feature, weight)` `(..., n, C)` of all pairs.

    features `(..., n, D)`, weights `(..., C, D)`. The norms of both do not matter.
    """
    directions = functional.normalize(features, dim=-1)
    return scale * (directions @ functional.normalize(weights, dim=-1).mT)


class CosineClassifier(nn.Module):
    """One weight vector for each class and a scale that all share, both learned.

    Weights start as draws of deviation sqrt(2 / D), as in the authors' code.
    """

    def __init__(self, feature_size: int, classes: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, feature_size) * math.sqrt(2 / feature_size))
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def forward(self, features: Tensor) -> Tensor:
        """Logits `(n, classes)` of features `(n, D)`."""
        return cosine_logits(features, self.weight, self.scale)
