"""Class means that move as queries are shared out evenly among the classes."""

import torch
from torch import Tensor

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.distances import centered
from epcore.classifiers.solvers.sinkhorn import balanced


def balanced_means(episodes: EpisodeBatch, scale: float, rate: float, steps: int) -> Tensor:
    """Log-probabilities `(..., queries, way)` after steps from the class means of the support.

    In each step a query x is of class k with a probability `p_k` of Sinkhorn's algorithm for the
    costs `scale * |x - mean_k|^2`, where each class gets the same number of queries.
    Each mean then moves by the part `rate` towards the mean of its support and of all queries
    weighted by `p_k`.
    """
    episodes = centered(episodes)
    query, means = episodes.query, episodes.class_means
    queries_per_class = episodes.queries / episodes.way
    counts = episodes.counts[:, None]
    support = means * counts

    def log_probabilities(means: Tensor) -> Tensor:
        # |x|^2 is the same for all classes.
        near = 2 * (query @ means.mT) - means.square().sum(dim=-1)[..., None, :]
        return balanced(scale * near, queries_per_class)

    for _ in range(steps):
        weights = log_probabilities(means).exp()
        estimate = support + weights.mT @ query
        sizes = counts + weights.sum(dim=-2)[..., None]
        means = torch.lerp(means, estimate / sizes, rate)
    return log_probabilities(means)
