"""Logistic regression on the support (RFS, Tian et al. 2020)."""

from typing import ClassVar

from pydantic import Field, PositiveFloat
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.softmax_regression import softmax_regression


class LogisticRegression(EpisodeClassifier):
    """Multinomial logistic regression of unit features: scores of a query x are `x W + b`.

    W and b minimize `cost * (sum of the support's cross-entropies) + |W|^2 / 2`; b is free. The
    authors' code has five augmented copies of each support image; here there is one.
    """

    needs: ClassVar[Needs] = Needs(frozen_features=True)

    preprocessing: tuple[Step, ...] = Field(
        default=("unit",), description="what is done to the features first, in this order"
    )
    cost: PositiveFloat = Field(
        default=1.0,
        description="weight of the summed cross-entropy, C of scikit-learn, whose default the "
        "authors' code uses",
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        weights, bias = softmax_regression(
            episodes.support, episodes.support_labels, penalty=1 / self.cost
        )
        scores: Tensor = episodes.query @ weights + bias
        return scores
