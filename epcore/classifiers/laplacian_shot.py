"""LaplacianShot: queries that are neighbors get the same class (Ziko et al. 2020)."""

from typing import ClassVar, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveInt
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.distances import squared_distances
from epcore.classifiers.solvers.rectification import Weighting, rectified_means, shifted_queries


class LaplacianShot(EpisodeClassifier):
    """Class distributions y of the queries, from distances to class means and from neighbors.

    `y <- softmax(-|q - mean|^2 + weight * W y)`, from `y = softmax(-|q - mean|^2)`, where
    `W_ij = 1` if j is one of the nearest queries of i. The class means are rectified
    by the queries, which are moved before; that takes it that they are spread evenly over the
    classes.

    The authors' code ends earlier where the energy changes by less than a millionth, and assigns
    the support anew when it rectifies; here the support keeps its labels.

    Imtiaz Masud Ziko, Jose Dolz, Eric Granger, Ismail Ben Ayed: Laplacian Regularized Few-Shot
    Learning, ICML 2020, https://arxiv.org/abs/2006.15486.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, LaplacianShot
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> method = LaplacianShot(preprocessing=["unit"])  # the default takes a base mean
        >>> model = FewShotClassifier(method).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True)

    preprocessing: tuple[Step, ...] = ("center-base", "unit")
    weight: NonNegativeFloat = Field(
        default=0.7,
        description="the paper's lambda; its code takes the best of 0.1, 0.3, 0.5, 0.7, 0.8, 1, "
        "1.2, 1.5 on validation: on mini-ImageNet 0.7 with 1 image of each class, 0.3 with 5",
    )
    neighbors: PositiveInt = Field(
        default=2, description="the authors' 3 count the query itself, of which W_ii = 0"
    )
    steps: PositiveInt = Field(default=20, description="the authors' code, at most")
    rectification: Weighting | Literal["none"] = Field(
        default="classes-by-count",
        description="how members of a class weigh in its mean: by the softmax over the classes, "
        "divided by their number (authors' code) or by the sum of their weights, or by the "
        "softmax over the members (BD-CSPN); none is the mean of the support",
    )

    @property
    def balanced(self) -> bool:
        return self.rectification != "none" or super().balanced

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        queries, means = episodes.query, episodes.class_means
        if self.rectification != "none":
            queries = shifted_queries(episodes)
            means = rectified_means(episodes, queries, self.rectification)
        unary = -squared_distances(queries, means)
        graph = _nearest(queries, self.neighbors)
        logits = unary
        for _ in range(self.steps):
            logits = unary + self.weight * (graph @ logits.softmax(dim=-1))
        return logits


def _nearest(points: Tensor, neighbors: int) -> Tensor:
    """`W_ij` `(..., N, N)`: 1 if j is one of the neighbors of i nearest to it, otherwise 0."""
    distances = squared_distances(points, points)
    distances.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    few = min(neighbors, points.shape[-2] - 1)
    nearest = distances.topk(few, dim=-1, largest=False).indices
    return torch.zeros_like(distances).scatter_(-1, nearest, 1)
