"""Soft k-means of clusters of one size."""

from typing import ClassVar

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.distances import centered, squared_distances
from epcore.classifiers.solvers.soft_k_means import clustered_means


class BalancedSoftKMeans(EpisodeClassifier):
    """Soft k-means in which the n images without labels weigh `n / way` in each class.

    The weights of an image x are first `softmax(-scale * |x - mean|^2)` over the classes; those of
    a class are then divided by their sum and multiplied by `n / way`. For the rest it is soft
    k-means: unlabeled images are clustered or, without any, the queries.

    The code of EASY (Bendou et al. 2022) had this balancing on one day, 20 January 2022, with
    queries only; as published later it is plain soft k-means, the entry `easy` of classifiers.yaml.

    Yassir Bendou and others: EASY: Ensemble Augmented-Shot Y-shaped Learning, 2022,
    https://arxiv.org/abs/2201.09699.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, BalancedSoftKMeans
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> method = BalancedSoftKMeans(preprocessing=["unit"])  # the default takes a base mean
        >>> model = FewShotClassifier(method).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(
        transductive=True, unlabeled=True, instead_of_queries=True, balanced=True
    )

    preprocessing: tuple[Step, ...] = ("center-base", "unit")
    steps: PositiveInt = Field(default=30, description="as in the code of EASY")
    scale: PositiveFloat = Field(
        default=20.0, description="the temperature of EASY's first commands for mini-ImageNet"
    )

    def _weights(self, distances: Tensor) -> Tensor:
        weights = (-self.scale * distances).softmax(dim=-1)
        sums = weights.sum(dim=-2, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
        return weights / sums * (weights.shape[-2] / weights.shape[-1])

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        episodes = centered(episodes)
        means = clustered_means(episodes, self.steps, self._weights)
        return -self.scale * squared_distances(episodes.query, means)
