"""The solver of logistic regressions, by scikit-learn and by the gradient at its solution."""

import numpy as np
import pytest
import sklearn.linear_model
import torch

from epcore.classifiers.solvers.softmax_regression import softmax_regression


def problem(way, shot, size, count=3, spread=1.0, seed=0):
    """Points `(count, way * shot, size)` and their classes, one-hot and as numbers."""
    random = np.random.default_rng(seed)
    points = torch.from_numpy(random.normal(1, spread, (count, way * shot, size)))
    classes = np.arange(way).repeat(shot)
    return points, torch.eye(way, dtype=torch.float64)[classes], classes


def scikit_learn(points, classes, cost, bias=True, amounts=None):
    solver = sklearn.linear_model.LogisticRegression(
        C=cost, fit_intercept=bias, tol=1e-12, max_iter=10000, solver="newton-cholesky"
    )
    return solver.fit(points, classes, amounts)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("cost", "bias"), [(0.01, True), (100, False)])
@pytest.mark.parametrize(("way", "shot", "size"), [(5, 1, 16), (3, 4, 5), (4, 5, 40), (3, 2, 1)])
def test_weights_are_those_of_scikit_learn(way, shot, size, cost, bias):
    points, targets, classes = problem(way, shot, size)
    weights, offset = softmax_regression(points, targets, 1 / cost, bias)
    for episode, found, constant in zip(points.numpy(), weights, offset, strict=True):
        expected = scikit_learn(episode, classes, cost, bias)
        np.testing.assert_allclose(found.numpy().T, expected.coef_, atol=2e-6, rtol=1e-5)
        np.testing.assert_allclose(constant.numpy()[0], expected.intercept_, atol=1e-5, rtol=1e-5)


def test_an_image_of_amount_zero_does_not_count_and_one_of_two_counts_twice():
    points, targets, classes = problem(3, 4, 5)
    amounts = torch.tensor([1.0, 0, 2, 1] * 3, dtype=torch.float64).expand(3, -1)
    weights, offset = softmax_regression(points, targets, 0.5, amounts=amounts)
    for episode, found, constant in zip(points.numpy(), weights, offset, strict=True):
        expected = scikit_learn(episode, classes, 2, amounts=amounts[0].numpy())
        np.testing.assert_allclose(found.numpy().T, expected.coef_, atol=2e-6)
        np.testing.assert_allclose(constant.numpy()[0], expected.intercept_, atol=1e-5)


def test_two_points_on_a_line_by_hand():
    """Points 1 and -1 of two classes: by symmetry W = (w, -w), b = 0, and w = 2 / (1 + e^2w)."""
    points = torch.tensor([[1.0], [-1]], dtype=torch.float64)
    weights, offset = softmax_regression(points, torch.eye(2), 1.0)
    w = weights[0, 0].item()
    np.testing.assert_allclose(w, 2 / (1 + np.exp(2 * w)), rtol=1e-8)
    np.testing.assert_allclose(weights[0, 1], -w, rtol=1e-8)
    np.testing.assert_allclose(offset, 0, atol=1e-10)


@pytest.mark.parametrize("penalty", [1e-4, 1e4])
@pytest.mark.parametrize("spread", [0.01, 50])
def test_the_gradient_vanishes_however_hard_the_problem(penalty, spread):
    """Written as loops over images and classes."""
    points, targets, classes = problem(4, 3, 7, spread=spread)
    weights, offset = softmax_regression(points, targets, penalty)
    for episode, found, constant in zip(points.numpy(), weights, offset, strict=True):
        gradient, scale = penalty * found.numpy(), np.zeros((7, 4))
        for point, label in zip(episode, classes, strict=True):
            scores = point @ found.numpy() + constant.numpy()[0]
            powers = [np.exp(score - max(scores)) for score in scores]
            for k in range(4):
                gradient[:, k] += (powers[k] / sum(powers) - (k == label)) * point
            scale[:, label] += point
        assert np.linalg.norm(gradient) < 1e-7 * np.linalg.norm(scale)


def test_equal_points_get_equal_probabilities():
    points = torch.ones(2, 6, 4, dtype=torch.float64)
    weights, offset = softmax_regression(points, torch.eye(3).repeat_interleave(2, 0), 1.0)
    scores = points @ weights + offset
    np.testing.assert_allclose(scores.softmax(dim=-1), 1 / 3, rtol=1e-9)


def test_an_episode_is_fitted_alike_alone_and_beside_a_harder_one():
    easy, targets, _ = problem(4, 3, 7, spread=0.1)
    hard, _, _ = problem(4, 3, 7, spread=50, seed=1)
    together = softmax_regression(torch.cat([easy, hard]), targets, 1e-3)
    for found, alone in zip(together, softmax_regression(easy, targets, 1e-3), strict=True):
        torch.testing.assert_close(found[:3], alone, rtol=1e-9, atol=1e-10)
