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

    Yonglong Tian, Yue Wang, Dilip Krishnan, Joshua B. Tenenbaum, Phillip Isola: Rethinking
    Few-Shot Image Classification: a Good Embedding Is All You Need?, ECCV 2020,
    https://arxiv.org/abs/2003.11539.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, LogisticRegression
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(LogisticRegression()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
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
