"""BD-CSPN by its formulas written as loops, and by hand."""

import math

import numpy as np
import pytest
import torch

from epcore.classifiers.bd_cspn import BDCSPN
from epcore.classifiers.episodes import EpisodeBatch

QUERIES = 9


def features(way, shot, size=4, count=3):
    shape = (count, way * shot + QUERIES, size)
    return torch.from_numpy(np.random.default_rng(0).normal(0.3, 1, shape))


def cosine(one, other):
    return np.dot(one, other) / math.sqrt(np.dot(one, one) * np.dot(other, other))


def probabilities(image, means, scale):
    odds = [math.exp(scale * cosine(image, mean)) for mean in means]
    return [each / sum(odds) for each in odds]


def brute_scores(points, way, shot, weighting, scale=10, confident=None, unmoved=False):
    support, queries = points[: way * shot], points[way * shot :]
    moved = queries + support.mean(axis=0) - queries.mean(axis=0)
    old = [support[k * shot : (k + 1) * shot].mean(axis=0) for k in range(way)]
    found = [probabilities(image, old, scale) for image in moved]
    means = []
    for k in range(way):
        joining = [(p[k], x) for p, x in zip(found, moved, strict=True) if np.argmax(p) == k]
        joining.sort(key=lambda each: -each[0])
        members = [*support[k * shot : (k + 1) * shot], *(x for _, x in joining[:confident])]
        # Equation 5: the softmax over all members of the class; elsewhere it is over the classes.
        weights = [
            math.exp(scale * cosine(x, old[k]))
            if weighting == "members"
            else probabilities(x, old, scale)[k]
            for x in members
        ]
        total = len(members) if weighting == "classes-by-count" else sum(weights)
        means.append(sum(w * x for w, x in zip(weights, members, strict=True)) / total)
    return [[scale * cosine(image, mean) for mean in means] for image in moved]


@pytest.mark.parametrize("weighting", ["members", "classes", "classes-by-count"])
@pytest.mark.parametrize(("scale", "confident"), [(10, None), (3, 2)])
@pytest.mark.parametrize(("way", "shot"), [(3, 1), (2, 4)])
def test_scores_are_those_of_the_formulas(way, shot, confident, scale, weighting):
    points = features(way, shot)
    method = BDCSPN(
        preprocessing=(),
        weighting=weighting,
        scale=scale,
        confident=confident,
    )
    found = method.scores(EpisodeBatch(points, way, shot, QUERIES))
    for episode, scores in zip(points.numpy(), found.numpy(), strict=True):
        expected = brute_scores(episode, way, shot, weighting, scale, confident)
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


def test_the_papers_weighting_is_the_default():
    assert BDCSPN().weighting == "members"


def test_queries_that_the_move_lays_on_the_support_by_hand():
    """Means of support and queries are (1, 1) / 2 and (3, 3) / 2, so that all move by (-1, -1)."""
    points = torch.tensor([[1.0, 0], [0, 1], [2, 1], [1, 2]], dtype=torch.float64)
    episodes = EpisodeBatch(points, 2, 1, 2)
    moved = BDCSPN(preprocessing=()).scores(episodes)
    np.testing.assert_allclose(moved.numpy(), [[10, 0], [0, 10]], atol=1e-12)


def test_classes_that_no_query_joins_keep_the_means_of_their_support_by_hand():
    """The move lays all queries on (2, 2) / 3, which is nearest to the third class."""
    points = torch.tensor([[1.0, 0], [0, 1], [1, 1], [5, 7], [5, 7]], dtype=torch.float64)
    scores = BDCSPN(preprocessing=()).scores(EpisodeBatch(points, 3, 1, 2))
    np.testing.assert_allclose(scores.numpy(), [[50**0.5, 50**0.5, 10]] * 2, atol=1e-12)
