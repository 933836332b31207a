"""K-means whose clusters begin at the class means of the support (Ren et al. 2018)."""

from collections.abc import Callable

from torch import Tensor

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.distances import squared_distances


def clustered_means(
    episodes: EpisodeBatch, steps: int, weights_of: Callable[[Tensor], Tensor]
) -> Tensor:
    """Class means `(..., way, D)` of the support and of what is clustered with it.

    That is the unlabeled images or, without any, the queries. In each step the support weighs 1 in
    its own class, the others `weights_of` their squared distances `(..., N, way)` to the means.
    """
    unlabeled = episodes.unlabeled_or_query
    means = episodes.class_means
    counts = episodes.counts
    sums = counts[:, None] * means
    for _ in range(steps):
        weights = weights_of(squared_distances(unlabeled, means))
        sizes = counts + weights.sum(dim=-2)
        means = (sums + weights.mT @ unlabeled) / sizes[..., None]
    return means
