"""Multinomial logistic regression with a quadratic penalty, of many episodes at once.

Newton's method. Each step is a linear system, solved by conjugate gradients, which need products
with the Hessian and never the matrix. An episode stops by its own gradient. Everything is float64,
so that the stop does not depend on the type of the features.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

STEPS, HALVINGS = 100, 30
# Of the gradient, relative to that of the features of each class's images.
TOLERANCE = 1e-8


@torch.no_grad()
def softmax_regression(
    points: Tensor,
    targets: Tensor,
    penalty: float,
    bias: bool = True,
    amounts: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Weights W `(..., D, way)` and bias b `(..., 1, way)`; scores of a point x are `x W + b`.

    Over points `(..., n, D)` with class distributions `(..., n, way)` they minimize
    `sum_i amount_i * cross_entropy(x_i W + b, target_i) + penalty / 2 * |W|^2`.
    The bias is not penalized; without `bias` it is zero. amounts `(..., n)` are 1 by default. No
    gradient passes through.
    """
    exact = points.double()
    basis = None
    if exact.shape[-1] > exact.shape[-2]:
        # W lies in the span of the points: n directions in place of D.
        basis, coordinates = torch.linalg.qr(exact.mT)
        exact = coordinates.mT
    penalties = exact.new_full((exact.shape[-1], 1), penalty)
    if bias:
        exact = functional.pad(exact, (0, 1), value=1)
        penalties = functional.pad(penalties, (0, 0, 0, 1))
    counts = exact.new_ones(exact.shape[:-1]) if amounts is None else amounts.double()
    solution = _Objective(exact, targets.double(), counts[..., None], penalties).minimum()
    weights, offset = (
        (solution[..., :-1, :], solution[..., -1:, :])
        if bias
        else (solution, torch.zeros_like(solution[..., :1, :]))
    )
    if basis is not None:
        weights = basis @ weights
    return weights.to(points.dtype), offset.to(points.dtype)


@dataclass(frozen=True)
class _Objective:
    """inputs `(..., n, d)`, targets `(..., n, way)`, amounts `(..., n, 1)`, penalties `(d, 1)`."""

    inputs: Tensor
    targets: Tensor
    amounts: Tensor
    penalties: Tensor

    def minimum(self) -> Tensor:
        """Weights `(..., d, way)`; they start at zero."""
        moments = self.inputs.mT @ (self.amounts * self.targets)
        scale = _dot(moments, moments).sqrt()
        weights = torch.zeros_like(moments)
        for _ in range(STEPS):
            probabilities = (self.inputs @ weights).softmax(dim=-1)
            errors = self.amounts * (probabilities - self.targets)
            gradient = self.inputs.mT @ errors + self.penalties * weights
            size = _dot(gradient, gradient).sqrt()
            going = size > TOLERANCE * scale
            if not bool(going.any()):
                break
            allowed = size * (size / scale).sqrt().clamp_max(0.1)
            direction = self._direction(probabilities, gradient * going, allowed)
            weights = weights + self._length(weights, direction, gradient) * direction
        return weights

    def _value(self, weights: Tensor) -> Tensor:
        logs = (self.inputs @ weights).log_softmax(dim=-1)
        penalty = _dot(weights, self.penalties * weights) / 2
        return penalty - _dot(logs, self.amounts * self.targets)

    def _curvature(self, probabilities: Tensor, direction: Tensor) -> Tensor:
        """The Hessian times a direction."""
        change = self.inputs @ direction
        mean = (probabilities * change).sum(dim=-1, keepdim=True)
        bent = self.amounts * probabilities * (change - mean)
        return self.inputs.mT @ bent + self.penalties * direction

    def _direction(self, probabilities: Tensor, gradient: Tensor, allowed: Tensor) -> Tensor:
        """Minus the inverse Hessian times the gradient, up to a residual of the size allowed."""
        direction = torch.zeros_like(gradient)
        residual = -gradient
        search = residual
        norm = _dot(residual, residual)
        for _ in range(gradient.shape[-2] * gradient.shape[-1]):
            going = norm > allowed.square()
            if not bool(going.any()):
                break
            curved = self._curvature(probabilities, search)
            length = torch.where(going, norm / _dot(search, curved), 0)
            direction = direction + length * search
            residual = residual - length * curved
            before, norm = norm, _dot(residual, residual)
            search = residual + torch.where(going, norm / before, 0) * search
        return direction

    def _length(self, weights: Tensor, direction: Tensor, gradient: Tensor) -> Tensor:
        """Length of the step: 1, halved until the objective falls, up to rounding."""
        value, slope = self._value(weights), _dot(gradient, direction)
        length = torch.ones_like(value)
        for _ in range(HALVINGS):
            bound = value + 1e-4 * length * slope + 1e-14 * value
            too_long = self._value(weights + length * direction) > bound
            if not bool(too_long.any()):
                break
            length = torch.where(too_long, length / 2, length)
        return length


def _dot(left_factor: Tensor, right_factor: Tensor) -> Tensor:
    """Inner product in each episode: `(..., 1, 1)`."""
    return (left_factor * right_factor).sum(dim=(-2, -1), keepdim=True)
