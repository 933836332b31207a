"""Gradients of classifiers by the features, against finite differences in float64.

A classifier whose `needs` do not say `frozen_features` may stand behind a network that is trained.
"""

from dataclasses import replace

import pytest
import torch
from test_invariants import ALL, UNLABELED, drawn
from torch.nn import functional

TRAINABLE = [each for each in ALL.values() if not each.needs.frozen_features]
TAKEN = [
    pytest.param(each, unlabeled, id=f"{each.name}-{unlabeled}")
    for each in TRAINABLE
    for unlabeled in ((0, UNLABELED) if each.needs.unlabeled else (0,))
]
STEP = 1e-6


def finite_difference(function, points, direction):
    """Slope of a function of the points along a direction."""
    return (function(points + STEP * direction) - function(points - STEP * direction)) / (2 * STEP)


@pytest.mark.parametrize("shot", [1, 3])
@pytest.mark.parametrize(("classifier", "unlabeled"), TAKEN)
def test_the_gradient_of_the_loss_is_that_of_finite_differences(classifier, unlabeled, shot):
    episodes, expected = drawn(shot, 0.5, unlabeled=unlabeled)

    def loss(points):
        logits = classifier.scores(replace(episodes, points=points))
        return functional.cross_entropy(logits.mT, expected.expand(len(points), -1))

    random = torch.Generator().manual_seed(2)
    points = (episodes.points + 0.1).requires_grad_()  # away from the corner of the ReLU
    (gradient,) = torch.autograd.grad(loss(points), points)
    for _ in range(3):
        direction = torch.randn(points.shape, generator=random, dtype=points.dtype)
        with torch.no_grad():
            slope = finite_difference(loss, points, direction)
        torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("shot", [1, 3])
@pytest.mark.parametrize("classifier", TRAINABLE, ids=lambda each: each.name)
def test_features_of_a_relu_that_are_zero_have_a_gradient(classifier, shot):
    """Roots are steep there."""
    episodes, _ = drawn(shot, 1)
    points = episodes.points.clone().requires_grad_()
    assert (points == 0).any()
    (gradient,) = torch.autograd.grad(
        classifier.scores(replace(episodes, points=points)).sum(), points
    )
    assert gradient.isfinite().all()
