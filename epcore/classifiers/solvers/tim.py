"""What TIM and alpha-TIM share: weights of the classes, and how they descend a loss.

The class distribution of an image x is the softmax over the classes k of
`-scale / 2 * |x - w_k|^2`; w_k is first the mean of the class's support.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional
from torch.optim import Adam

from epcore.classifiers.episodes import EpisodeBatch

# The derivative of a loss by the class distributions of the queries, given these and their
# logarithms, all `(..., way, queries)`. A term that is alike in all classes changes nothing.
QuerySlope = Callable[[Tensor, Tensor], Tensor]


def labeled_and_queries(episodes: EpisodeBatch) -> Tensor:
    """Support and queries `(..., N, D)`, without the unlabeled images."""
    return episodes.points[..., : episodes.labeled + episodes.queries, :]


def class_scores(weights: Tensor, images: Tensor, scale: float) -> Tensor:
    """Logits `(..., way, N)`, less the term `scale / 2 * |x|^2` that is alike in all classes."""
    half_norms = weights.square().sum(dim=-1, keepdim=True) / 2
    return scale * (weights @ images.mT - half_norms)


def log_probabilities(weights: Tensor, images: Tensor, scale: float) -> Tensor:
    """Logarithms of the class distributions `(..., way, N)`."""
    return functional.log_softmax(class_scores(weights, images, scale), dim=-2)


def pull(weights: Tensor, images: Tensor, strengths: Tensor) -> Tensor:
    """`sum_i strengths_ki (x_i - w_k)` `(..., way, D)`."""
    return strengths @ images - strengths.sum(dim=-1, keepdim=True) * weights


def descended(
    episodes: EpisodeBatch,
    scale: float,
    support_weight: float,
    slope: QuerySlope,
    steps: int,
    learning_rate: float,
) -> Tensor:
    """Weights `(..., way, D)` after steps of Adam on `support_weight * CE + loss of queries`.

    CE is the mean cross-entropy of the support, `slope` the derivative of the other loss. Adam
    treats each number by itself, so an episode of a batch descends as it would alone.
    """
    images, labels = labeled_and_queries(episodes), episodes.support_labels.mT
    weights = episodes.class_means.detach().clone()
    optimizer = Adam([weights], lr=learning_rate, fused=True)
    parts = [episodes.labeled, episodes.queries]
    for _ in range(steps):
        logarithms = log_probabilities(weights, images, scale)
        support, query = torch.split(logarithms.exp(), parts, dim=-1)
        slopes = slope(query, logarithms[..., episodes.labeled :])
        # Through the softmax: the derivative of the loss by the logits.
        query_part = query * (slopes - (query * slopes).sum(dim=-2, keepdim=True))
        support_part = (support - labels) * (support_weight / episodes.labeled)
        strengths = torch.cat([support_part, query_part], dim=-1)
        weights.grad = scale * pull(weights, images, strengths)
        optimizer.step()
    return weights
