"""Transductive information maximization (TIM, Boudiaf et al. 2020)."""

from typing import ClassVar, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.distances import centered
from epcore.classifiers.solvers.tim import (
    class_scores,
    descended,
    labeled_and_queries,
    log_probabilities,
    pull,
)


class TIM(EpisodeClassifier):
    """Weights of the classes that tell the queries apart with confidence, and evenly.

    From the class means, weights w_k of the classes descend the loss
    `support_weight * CE - marginal_weight * H(mean p) + conditional_weight * mean H(p)`: CE is the
    cross-entropy of the support, p the class distribution of a query, H the Shannon entropy. Their
    distributions are the softmax of `-scale / 2 * |x - w_k|^2`. The entropy of the mean
    distribution is highest for as many queries in each class.

    Solvers: gd is Adam on that loss. adm is the paper's alternating one: auxiliary distributions q
    in closed form, then weights in closed form, the distributions of the last step held fixed.
    The settings are those of the authors' code, which has the weights of the paper.

    Malik Boudiaf and others: Transductive Information Maximization For Few-Shot Learning,
    NeurIPS 2020, https://arxiv.org/abs/2008.11297.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, TIM
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(TIM()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, frozen_features=True)

    preprocessing: tuple[Step, ...] = ("unit",)
    solver: Literal["gd", "adm"] = Field(default="gd", description="TIM-GD or TIM-ADM")
    steps: PositiveInt | None = Field(
        default=None, description="unset: 1000 of gd or 150 of adm, as in the authors' scripts"
    )
    scale: PositiveFloat = Field(default=15.0, description="the authors' temperature")
    support_weight: NonNegativeFloat = Field(default=0.1, description="the paper's lambda")
    marginal_weight: NonNegativeFloat = Field(
        default=1.0, description="0 is the paper's ablation without even classes"
    )
    conditional_weight: NonNegativeFloat = Field(default=0.1, description="the paper's alpha")
    learning_rate: PositiveFloat = Field(default=1e-4, description="of gd")

    @property
    def balanced(self) -> bool:
        return self.marginal_weight > 0 or super().balanced

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        episodes = centered(episodes)
        weights = self._descended(episodes) if self.solver == "gd" else self._alternated(episodes)
        return class_scores(weights, episodes.query, self.scale).mT

    def _descended(self, episodes: EpisodeBatch) -> Tensor:
        def slope(query: Tensor, logarithms: Tensor) -> Tensor:
            marginal = query.mean(dim=-1, keepdim=True).clamp_min(torch.finfo(query.dtype).tiny)
            slopes = self.marginal_weight * marginal.log() - self.conditional_weight * logarithms
            return slopes / episodes.queries

        steps = self.steps or 1000
        return descended(
            episodes, self.scale, self.support_weight, slope, steps, self.learning_rate
        )

    def _alternated(self, episodes: EpisodeBatch) -> Tensor:
        images, labels = labeled_and_queries(episodes), episodes.support_labels.mT
        weights = episodes.class_means
        power = 1 + self.conditional_weight
        evenness = self.marginal_weight / (self.marginal_weight + 1)
        of_support = self.support_weight / power
        of_class = (of_support * episodes.counts.double()).to(weights.dtype)[:, None]
        of_query = episodes.labeled / episodes.queries
        parts = [episodes.labeled, episodes.queries]
        for _ in range(self.steps or 150):
            logarithms = log_probabilities(weights, images, self.scale)
            support, query = torch.split(logarithms.exp(), parts, dim=-1)
            # q ~ p^power / (sum of p^power over the queries)^evenness, normalized over classes.
            powers = power * logarithms[..., episodes.labeled :]
            sums = powers.logsumexp(dim=-1, keepdim=True)
            auxiliary = (powers - evenness * sums).softmax(dim=-2)
            strengths = torch.cat(
                [of_support * (labels - support), of_query * (auxiliary - query)], dim=-1
            )
            size = of_class + of_query * auxiliary.sum(dim=-1, keepdim=True)
            weights = weights + pull(weights, images, strengths) / size
        return weights
