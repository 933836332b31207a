"""Adam (Kingma and Ba 2015) from its formulas, for losses that are written as loops."""

import numpy as np
import torch


def adam(loss, start, steps, rate):
    """Where `loss` of a tensor leads from `start`: gradients by autograd, moments in numpy."""
    point = np.array(start, dtype=np.float64)
    first, second = np.zeros_like(point), np.zeros_like(point)
    for step in range(1, steps + 1):
        leaf = torch.tensor(point, requires_grad=True)
        loss(leaf).backward()
        slope = leaf.grad.numpy()
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope**2
        unbiased, size = first / (1 - 0.9**step), second / (1 - 0.999**step)
        point = point - rate * unbiased / (np.sqrt(size) + 1e-8)
    return point


def assert_same_softmax(scores, expected, tolerance):
    """Logits `(queries, way)` may differ by a number for each query, alike in all classes."""
    scores, expected = (np.asarray(logits) for logits in (scores, expected))
    scores, expected = (
        logits - logits.mean(axis=1, keepdims=True) for logits in (scores, expected)
    )
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)
