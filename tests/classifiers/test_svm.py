"""The support vector machine, by scikit-learn and by hand."""

import warnings

import numpy as np
import pytest
import sklearn.svm
import torch

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.svm import SVM

QUERIES = 7


def features(way, shot, size, count=3):
    shape = (count, way * shot + QUERIES, size)
    return torch.from_numpy(np.random.default_rng(0).normal(1, 1, shape))


def scikit_learn(points, way, shot, cost, ridge):
    """A number on the kernel's diagonal is a feature of its own for each support image."""
    n = way * shot
    own = np.sqrt(ridge) * np.vstack([np.eye(n), np.zeros((len(points) - n, n))])
    inputs = np.hstack([points, own])
    solver = sklearn.svm.LinearSVC(
        C=cost, multi_class="crammer_singer", fit_intercept=False, tol=1e-9, max_iter=10**6
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solver.fit(inputs[:n], np.arange(n) // shot)
    return solver.decision_function(inputs[n:])


@pytest.mark.parametrize(("cost", "ridge"), [(0.01, 1), (0.1, 0), (10, 5)])
@pytest.mark.parametrize(("way", "shot", "size"), [(5, 1, 16), (3, 4, 5), (4, 5, 64), (3, 2, 1)])
def test_scores_are_those_of_scikit_learn(way, shot, size, cost, ridge):
    points = features(way, shot, size)
    machine = SVM(cost=cost, kernel_ridge=ridge)
    found = machine.scores(EpisodeBatch(points, way, shot, QUERIES)).numpy()
    for episode, scores in zip(points.numpy(), found, strict=True):
        expected = scikit_learn(episode, way, shot, cost, ridge)
        np.testing.assert_allclose(scores, expected, atol=1e-8, rtol=1e-4)


@pytest.mark.parametrize(("cost", "ridge"), [(1, 1), (0.1, 1), (1, 0), (0.2, 0)])
def test_two_points_on_a_line_by_hand(cost, ridge):
    """Support 1 and -1: rows (a, -a) and (-a, a), so W = (2a, -2a).

    The dual is 4a^2 + 2 ridge a^2 - 2a, least at a = 1 / (4 + 2 ridge) or at the bound `cost`.
    """
    points = torch.tensor([[1.0], [-1], [3]], dtype=torch.float64)
    (scores,) = SVM(cost=cost, kernel_ridge=ridge).scores(EpisodeBatch(points, 2, 1, 1)).tolist()
    a = min(cost, 1 / (4 + 2 * ridge))
    assert scores == pytest.approx([6 * a, -6 * a], rel=1e-5)


def test_an_episode_is_solved_alike_alone_and_beside_a_harder_one():
    easy = features(3, 2, 5)
    together = SVM().scores(EpisodeBatch(torch.cat([easy, 30 * easy]), 3, 2, QUERIES))
    alone = SVM().scores(EpisodeBatch(easy, 3, 2, QUERIES))
    torch.testing.assert_close(together[:3], alone, rtol=1e-9, atol=1e-10)
