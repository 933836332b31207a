"""Self-training with hard pseudo-labels, a reading of LST (Li et al. 2019) on frozen features."""

from typing import ClassVar

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.rows import rows_of
from epcore.classifiers.solvers.softmax_regression import softmax_regression
from epcore.classifiers.solvers.surest import surest_of_each_class


class SelfTraining(EpisodeClassifier):
    """Logistic regression on the support and the unlabeled images that it is surest of.

    Each round gives every unlabeled image its most likely class, keeps the `per_class` most
    probable images of each class, and fits the regression anew to them and the support. All images
    count the same. Without unlabeled images the queries take their place. LST also learns to weigh
    the images, sees other unlabeled images in each round, and ends with steps on the support alone.

    Xinzhe Li and others: Learning to Self-Train for Semi-Supervised Few-Shot Classification,
    NeurIPS 2019, https://arxiv.org/abs/1906.00562.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, SelfTraining
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(SelfTraining()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(
        transductive=True, unlabeled=True, instead_of_queries=True, frozen_features=True
    )

    preprocessing: tuple[Step, ...] = Field(
        default=("unit",), description="what is done to the features first, in this order"
    )
    cost: PositiveFloat = Field(
        default=1.0, description="weight of the summed cross-entropy, as of logistic-regression"
    )
    per_class: PositiveInt = Field(
        default=20, description="most unlabeled images of a class that are kept; LST's code"
    )
    rounds: PositiveInt = Field(
        default=4, description="how often pseudo-labels are given; LST's code"
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        candidates = episodes.unlabeled_or_query
        leading, way = episodes.points.shape[:-2], episodes.way
        labels = episodes.support_labels.expand(*leading, -1, -1)
        counts = labels.sum(dim=-1)
        weights, bias = softmax_regression(episodes.support, labels, 1 / self.cost)
        for _ in range(self.rounds):
            sureness, guesses = (candidates @ weights + bias).softmax(dim=-1).max(dim=-1)
            places, amounts = surest_of_each_class(sureness, guesses, way, self.per_class)
            chosen = rows_of(candidates, places)
            pseudo = functional.one_hot(guesses.gather(-1, places), way).to(labels.dtype)
            weights, bias = softmax_regression(
                torch.cat([episodes.support, chosen], dim=-2),
                torch.cat([labels, pseudo], dim=-2),
                1 / self.cost,
                amounts=torch.cat([counts, amounts], dim=-1),
            )
        scores: Tensor = episodes.query @ weights + bias
        return scores
