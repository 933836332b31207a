"""The dual of Crammer and Singer's support vector machine, and the gradient of its solution."""

import torch
from torch import Tensor

STEPS, STEPS_TO_A_CHECK = 5000, 10
# Of the duality gap, relative to `cost` times the number of images.
TOLERANCE = 1e-10


def dual_coefficients(kernel: Tensor, labels: Tensor, cost: float) -> Tensor:
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


def differentiable_dual_coefficients(kernel: Tensor, labels: Tensor, cost: float) -> Tensor:
    """`dual_coefficients` A `(..., n, way)` with their gradient in the kernel K `(..., n, n)`.

    Where no coefficient that lies at its bound is about to leave it, the others solve a linear
    system (the conditions of Karush, Kuhn and Tucker): `(K A)_im - [m = y_i] + l_i = 0` for each
    that is free, and rows of sum 0. Its solution is A, and its gradient that of A (implicit
    differentiation, as in OptNet, Amos and Kolter 2017, which MetaOptNet's code uses).
    """
    labels = labels.expand(*kernel.shape[:-1], -1)
    with torch.no_grad():
        solution = dual_coefficients(kernel, labels, cost)
        free = (solution < cost * labels).to(kernel.dtype).flatten(-2)  # (..., n way)
    images, way = labels.shape[-2:]
    classes = torch.eye(way, dtype=kernel.dtype, device=kernel.device)
    stationary = torch.kron(kernel, classes)  # (..., n way, n way), of coefficients image by image
    own_image = torch.eye(images, dtype=kernel.dtype, device=kernel.device)
    own_image = own_image.repeat_interleave(way, dim=0)  # (n way, n)
    upper = torch.cat(
        [
            free[..., None] * stationary + torch.diag_embed(1 - free),
            free[..., None] * own_image,
        ],
        dim=-1,
    )
    lower = torch.cat([own_image.mT, own_image.new_zeros(images, images)], dim=-1)
    system = torch.cat([upper, lower.expand(*kernel.shape[:-2], -1, -1)], dim=-2)
    target = torch.where(free > 0, labels.flatten(-2), cost * labels.flatten(-2))
    target = torch.cat([target, target.new_zeros(*target.shape[:-1], images)], dim=-1)
    coefficients: Tensor = torch.linalg.solve(system, target)[..., : images * way]
    return coefficients.reshape(*target.shape[:-1], images, way)
