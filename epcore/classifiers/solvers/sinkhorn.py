"""Distributions over classes that together hold a given number of images of each class."""

import torch
from torch import Tensor

TOLERANCE, STEPS = 1e-10, 1000
# Of a count, and of a curvature. Both keep a class that gets nothing from going to infinity.
SMALLEST_COUNT, SMALLEST_CURVATURE = 1e-6, 1e-12


def balanced(logits: Tensor, counts: Tensor | float, rows: Tensor | None = None) -> Tensor:
    """Log-probabilities `(..., n, m)` of logits `(..., n, m)`, with given sums over the n rows.

    Offsets `g` of the m classes are found so that `p = softmax(logits + g)` has the sums `counts`,
    `(..., m)` or one number for all. This p is the fixed point of Sinkhorn's algorithm, and the
    plan of optimal transport for the costs `-logits` and an entropy of weight 1. rows `(..., n)`,
    ones if not given: how much each row counts in the sums. Counts that do not add up to the sum of
    the rows are scaled so that they do.

    The offsets maximize `counts * g - sum_i rows_i * logsumexp(logits_i + g)`. Newton's method
    takes some ten steps, where Sinkhorn's algorithm takes thousands of rounds if classes are far
    apart. Let d be the largest difference of a step between two classes. Along the step the third
    derivative is at most d times the second, so that the objective cannot fall over the part
    log(1 + d) / d of the step, which is taken.

    Each set of rows stops on its own, when the sums are within 1e-10 of the counts. All is in
    float64, because the sums are too coarse in float32; the result has the type of the logits.
    """
    # Rows in the last dimension: PyTorch's softmax of a few classes takes ten times as long there.
    scores = logits.mT.to(torch.float64).contiguous()
    weights = scores.new_ones(scores.shape[-1:]) if rows is None else rows.to(torch.float64)
    targets = torch.as_tensor(counts, dtype=torch.float64, device=scores.device)
    targets = targets.expand(scores.shape[:-1]).clamp_min(SMALLEST_COUNT)
    total = weights.sum(dim=-1, keepdim=True)
    targets = targets * (total / targets.sum(dim=-1, keepdim=True))
    # The objective does not change along equal offsets: there any curvature will do, such as 1.
    identity = torch.eye(targets.shape[-1], dtype=torch.float64, device=scores.device)
    flat = torch.ones_like(identity) / len(identity) + SMALLEST_CURVATURE * identity
    for _ in range(STEPS):
        plan = scores.softmax(dim=-2)
        weighted = weights[..., None, :] * plan
        missing = targets - weighted.sum(dim=-1)
        unfinished = (missing.abs() > TOLERANCE).any(dim=-1, keepdim=True)
        if not bool(unfinished.any()):
            break
        shared = (weighted @ plan.mT) * (1 - identity)
        curvature = torch.diag_embed(shared.sum(dim=-1)) - shared + flat
        step = torch.cholesky_solve(missing[..., None], torch.linalg.cholesky(curvature))
        step = step.squeeze(-1)
        size = step.amax(dim=-1, keepdim=True) - step.amin(dim=-1, keepdim=True)
        size = torch.where(unfinished, size, 1)  # a step of size 0 has no gradient
        step = step * torch.where(unfinished, size.log1p() / size, 0)
        scores = scores + step[..., None]
    return scores.log_softmax(dim=-2).mT.to(logits.dtype)
