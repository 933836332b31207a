"""Ridge regression, by scikit-learn's solver over features and by hand."""

import numpy as np
import pytest
import sklearn.linear_model
import torch

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.ridge import Ridge

QUERIES = 7


def features(way, shot, size, count=3):
    shape = (count, way * shot + QUERIES, size)
    return torch.from_numpy(np.random.default_rng(0).normal(1, 2, shape))


def with_ones(points):
    return np.hstack([points, np.ones((len(points), 1))])


@pytest.mark.parametrize("regularization", [0.01, 1, 50])
@pytest.mark.parametrize(("way", "shot", "size"), [(5, 1, 16), (3, 4, 5), (2, 5, 1)])
def test_scores_are_those_of_scikit_learn(way, shot, size, regularization):
    """There the error is a sum, so its penalty is n times ours; SVD, in float64."""
    points = features(way, shot, size)
    episodes = EpisodeBatch(points, way, shot, QUERIES)
    found = Ridge(regularization=regularization).scores(episodes)
    n = way * shot
    labels = np.eye(way)[np.arange(n) // shot]
    for episode, scores in zip(points.numpy(), found.numpy(), strict=True):
        solver = sklearn.linear_model.Ridge(n * regularization, fit_intercept=False, solver="svd")
        solver.fit(with_ones(episode[:n]), labels)
        np.testing.assert_allclose(scores, solver.predict(with_ones(episode[n:])), atol=1e-10)


def test_two_points_on_a_line_by_hand():
    """Support 1 and -1, so that columns are orthogonal: W = X^T Y / (2 + 2 regularization)."""
    points = torch.tensor([[1.0], [-1], [3]], dtype=torch.float64)
    scores = Ridge(regularization=3).scores(EpisodeBatch(points, 2, 1, 1))
    np.testing.assert_allclose(scores.numpy(), [[(3 + 1) / 8, (-3 + 1) / 8]], rtol=1e-12)
