"""Logistic regression, by scikit-learn."""

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.preprocessing
import torch

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.logistic_regression import LogisticRegression

QUERIES = 7


def features(way, shot, size, count=3):
    shape = (count, way * shot + QUERIES, size)
    return torch.from_numpy(np.random.default_rng(0).normal(1, 2, shape))


@pytest.mark.parametrize("cost", [0.1, 1, 10])
@pytest.mark.parametrize(("way", "shot", "size"), [(5, 1, 16), (3, 4, 5), (4, 5, 64)])
def test_scores_are_those_of_scikit_learn_on_unit_features(way, shot, size, cost):
    points = features(way, shot, size)
    found = LogisticRegression(cost=cost).scores(EpisodeBatch(points, way, shot, QUERIES))
    n = way * shot
    for episode, scores in zip(points.numpy(), found.numpy(), strict=True):
        unit = sklearn.preprocessing.normalize(episode)
        solver = sklearn.linear_model.LogisticRegression(C=cost, tol=1e-12, max_iter=10000)
        solver.fit(unit[:n], np.arange(n) // shot)
        np.testing.assert_allclose(scores, solver.decision_function(unit[n:]), atol=2e-5)


def test_five_copies_of_each_image_are_a_cost_five_times_as_high():
    points = features(3, 2, 6)
    copied = torch.cat([points[:, :6].repeat_interleave(5, dim=1), points[:, 6:]], dim=1)
    found = LogisticRegression().scores(EpisodeBatch(copied, 3, 10, QUERIES))
    expected = LogisticRegression(cost=5).scores(EpisodeBatch(points, 3, 2, QUERIES))
    torch.testing.assert_close(found, expected)


def test_other_preprocessing_is_possible():
    episodes = EpisodeBatch(features(3, 2, 6), 3, 2, QUERIES)
    raw, unit = (LogisticRegression(preprocessing=steps) for steps in ((), ("unit",)))
    assert not torch.allclose(raw.scores(episodes), unit.scores(episodes))
