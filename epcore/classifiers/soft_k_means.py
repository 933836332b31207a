"""Soft k-means from the class means of the support (Ren et al. 2018)."""

from typing import ClassVar

from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.distances import centered, squared_distances
from epcore.classifiers.solvers.soft_k_means import clustered_means


class SoftKMeans(EpisodeClassifier):
    """Minus the squared distance to class means that take in images without labels.

    Each such image x weighs `softmax(-scale * |x - mean|^2)` over the classes in the new means,
    the support 1 in its class. With unlabeled images these are clustered, and each query is scored
    by the means alone; without any, the queries themselves are clustered.

    The authors' networks are trained with a scale of 1; that of other features is to be chosen.

    Mengye Ren and others: Meta-Learning for Semi-Supervised Few-Shot Classification, ICLR 2018,
    https://arxiv.org/abs/1803.00676.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, SoftKMeans
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(SoftKMeans()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, unlabeled=True, instead_of_queries=True)

    steps: PositiveInt = Field(default=1, description="the authors' code")
    scale: PositiveFloat = Field(
        default=1.0, description="what multiplies squared distances; 1 in the authors' code"
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        episodes = centered(episodes)
        means = clustered_means(
            episodes, self.steps, lambda distances: (-self.scale * distances).softmax(dim=-1)
        )
        return -self.scale * squared_distances(episodes.query, means)
