"""Multi-class support vector machine (MetaOptNet, Lee et al. 2019)."""

from typing import ClassVar

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch

STEPS, STEPS_TO_A_CHECK = 5000, 10
# Of the duality gap, relative to `cost` times the number of images.
TOLERANCE = 1e-10


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
        dual = _dual(kernel, episodes.support_labels.double(), self.cost)
        scores: Tensor = episodes.query @ (support.mT @ dual).to(episodes.points.dtype)
        return scores


def _dual(kernel: Tensor, labels: Tensor, cost: float) -> Tensor:
    """Coefficients A `(..., n, way)` of the support, of the machine with that kernel K.

    They minimize `tr(A^T K A) / 2 - sum_i A_iy` with `A_im <= cost * [m = y_i]` and rows of sum 0.
    """
    labels = labels.expand(*kernel.shape[:-1], -1)
    upper = cost * labels
    step = 1 / torch.linalg.eigvalsh(kernel)[..., -1:, None].clamp_min(1e-300)
    dual = ahead = torch.zeros_like(labels)
    age = torch.ones_like(step)
    going = torch.ones_like(step, dtype=torch.bool)
    for number in range(STEPS):
        if number % STEPS_TO_A_CHECK == 0:
            going = _gap(kernel @ dual, dual, labels, cost) > TOLERANCE * cost * labels.shape[-2]
            if not bool(going.any()):
                break
        slack = upper - ahead + step * (kernel @ ahead - labels)
        moved = torch.where(going, upper - _onto_simplex(slack, cost), dual)
        move = moved - dual
        # Momentum that points uphill is dropped (O'Donoghue and Candes 2015).
        uphill = ((ahead - moved) * move).sum(dim=(-2, -1), keepdim=True) > 0
        older = (1 + (1 + 4 * age.square()).sqrt()) / 2
        ahead = moved + torch.where(uphill, 0, (age - 1) / older) * move
        age = torch.where(uphill, 1, older)
        dual = moved
    return dual


def _gap(scores: Tensor, dual: Tensor, labels: Tensor, cost: float) -> Tensor:
    """The primal objective minus the dual one `(..., 1, 1)`."""
    losses = (scores + 1 - labels).amax(dim=-1, keepdim=True) - (scores * labels).sum(-1, True)
    parts = (dual * (scores - labels)).sum(dim=-1, keepdim=True) + cost * losses
    return parts.sum(dim=-2, keepdim=True)


def _onto_simplex(values: Tensor, total: float) -> Tensor:
    """The nearest rows with entries of at least 0 and that sum, exactly, by sorting."""
    falling = values.sort(dim=-1, descending=True).values
    excess = falling.cumsum(dim=-1) - total
    counts = torch.arange(1, values.shape[-1] + 1, device=values.device)
    positive = (falling * counts > excess).sum(dim=-1, keepdim=True)
    return (values - excess.gather(-1, positive - 1) / positive).clamp_min(0)
