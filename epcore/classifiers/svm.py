"""Multi-class support vector machine (MetaOptNet, Lee et al. 2019)."""

from typing import ClassVar

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.crammer_singer import dual_coefficients


class SVM(EpisodeClassifier):
    """Crammer and Singer's machine on the support: scores of a query x are `x W`.

    W minimizes `|W|^2 / 2 + cost * sum_i max_m (s_im + [m != y_i] - s_iy)`, where s_i are the
    scores of support image i and y its class. It is found in the dual by accelerated projected
    gradient steps, each episode until its duality gap is closed; the authors' code takes at most 15
    steps of an interior-point method (the paper says 3). There a scale of the scores is learned in
    training; here it is 1, which changes no prediction.

    Kwonjoon Lee, Subhransu Maji, Avinash Ravichandran, Stefano Soatto: Meta-Learning with
    Differentiable Convex Optimization, CVPR 2019, https://arxiv.org/abs/1904.03758.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, SVM
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(SVM()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(frozen_features=True)

    cost: PositiveFloat = Field(
        default=0.1, description="weight of the summed losses, C; 0.1 in the authors' code"
    )
    kernel_ridge: NonNegativeFloat = Field(
        default=1.0,
        description="added to the diagonal of the support's kernel: 1 in the authors' code, 0 in "
        "the paper",
    )

    @torch.no_grad()
    def logits(self, episodes: EpisodeBatch) -> Tensor:
        support = episodes.support.double()
        kernel = support @ support.mT
        kernel.diagonal(dim1=-2, dim2=-1).add_(self.kernel_ridge)
        dual = dual_coefficients(kernel, episodes.support_labels.double(), self.cost)
        scores: Tensor = episodes.query @ (support.mT @ dual).to(episodes.points.dtype)
        return scores
