"""Soft k-means that leaves out what is far from a class (Ren et al. 2018)."""

from typing import ClassVar, Literal

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.distances import centered, squared_distances
from epcore.classifiers.solvers.soft_k_means import clustered_means


class MaskedSoftKMeans(EpisodeClassifier):
    """Soft k-means whose weights are multiplied by masks, against images of no class.

    `d_jk` is the squared distance of image j to the mean of class k, divided by its mean over all
    images that are clustered; the mask is `sigmoid((beta - d_jk) * gamma)`. The authors train a
    small network that tells beta and gamma from the distances of an episode; here they are fixed.

    Mengye Ren and others: Meta-Learning for Semi-Supervised Few-Shot Classification, ICLR 2018,
    https://arxiv.org/abs/1803.00676.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, MaskedSoftKMeans
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(MaskedSoftKMeans()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, unlabeled=True, instead_of_queries=True)

    steps: PositiveInt = Field(default=1, description="the authors' code")
    scale: PositiveFloat = Field(
        default=1.0, description="what multiplies squared distances; 1 in the authors' code"
    )
    beta: PositiveFloat = Field(
        default=1.0,
        description="beyond this multiple of the mean distance an image counts less than half; "
        "1 is where the authors' network begins",
    )
    gamma: PositiveFloat = Field(
        default=1.0, description="how sharp that border is; 1 is where their network begins"
    )
    mask_power: Literal[1, 2] = Field(
        default=2, description="the paper multiplies by the mask once, the authors' code twice"
    )

    def _weights(self, distances: Tensor) -> Tensor:
        mean = distances.mean(dim=-2, keepdim=True).clamp_min(torch.finfo(distances.dtype).tiny)
        masks = ((self.beta - distances / mean) * self.gamma).sigmoid()
        return (-self.scale * distances).softmax(dim=-1) * masks**self.mask_power

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        episodes = centered(episodes)
        means = clustered_means(episodes, self.steps, self._weights)
        return -self.scale * squared_distances(episodes.query, means)
