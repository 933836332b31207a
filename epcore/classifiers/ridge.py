"""Ridge regression of the one-hot classes, in closed form (R2-D2, Bertinetto et al. 2019)."""

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.base import EpisodeClassifier
from epcore.classifiers.episodes import EpisodeBatch


class Ridge(EpisodeClassifier):
    """Scores of a query x are `[x, 1] W`, where W is fitted to the support of its episode.

    Over the n support images x and their one-hot classes y, W minimizes
    `sum |[x, 1] W - y|^2 / n + regularization * |W|^2`.

    As in R2-D2's code the bias is a feature of ones, so that it is penalized too, and the error is
    a mean, so that the penalty weighs the same with any number of shots. There a scale and an
    offset of the logits are learned in training; here they are 1 and 0, which changes no
    prediction.

    Luca Bertinetto, João F. Henriques, Philip H. S. Torr, Andrea Vedaldi: Meta-learning with
    differentiable closed-form solvers, ICLR 2019, https://arxiv.org/abs/1805.08136.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, Ridge
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(Ridge()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    regularization: PositiveFloat = Field(
        default=1.0,
        description="weight of the penalty; of 0.001, 0.01, ... 100, the default was the best on "
        "validation episodes of glyph-mini, with Conv-4",
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        images = (episodes.support, episodes.query)
        support, query = (functional.pad(points, (0, 1), value=1) for points in images)
        # W = X^T (X X^T + n * regularization * I)^-1 Y: a system of n images, not of D features.
        identity = torch.eye(episodes.labeled, dtype=support.dtype, device=support.device)
        gram = support @ support.mT + episodes.labeled * self.regularization * identity
        dual = torch.cholesky_solve(episodes.support_labels, torch.linalg.cholesky(gram))
        scores: Tensor = query @ (support.mT @ dual)
        return scores
