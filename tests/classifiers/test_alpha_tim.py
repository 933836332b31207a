"""Alpha-TIM by the formula of its loss, written as loops, and as TIM where alpha is near 1."""

import numpy as np
import pytest
import torch
from descent import adam, assert_same_softmax

from epcore.classifiers.alpha_tim import AlphaTIM
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.tim import TIM

QUERIES = 5


def features(way, shot, size=3, count=2):
    shape = (count, way * shot + QUERIES, size)
    return torch.from_numpy(np.random.default_rng(0).normal(0, 0.5, shape))


def distribution(weights, image, scale):
    odds = [
        torch.exp(-scale / 2 * sum((x - w) ** 2 for x, w in zip(image, weight, strict=True)))
        for weight in weights
    ]
    return [each / sum(odds) for each in odds]


def tsallis(probabilities, alpha):
    return (1 - sum(p**alpha for p in probabilities)) / (alpha - 1)


def loss_of(weights, support, shot, queries, scale, alpha):
    errors = [
        -torch.log(distribution(weights, image, scale)[number // shot])
        for number, image in enumerate(support)
    ]
    found = [distribution(weights, image, scale) for image in queries]
    mean = [sum(each) / len(found) for each in zip(*found, strict=True)]
    conditional = sum(tsallis(each, alpha) for each in found) / len(found)
    return sum(errors) / len(errors) - tsallis(mean, alpha) + conditional


@pytest.mark.parametrize("alpha", [1.5, 7.0])
@pytest.mark.parametrize(("way", "shot"), [(3, 1), (2, 3)])
def test_it_is_adam_on_the_loss(way, shot, alpha):
    points = features(way, shot)
    method = AlphaTIM(preprocessing=(), alpha=alpha, steps=12, scale=3, learning_rate=0.05)
    found = method.scores(EpisodeBatch(points, way, shot, QUERIES))
    for episode, scores in zip(points.numpy(), found.numpy(), strict=True):
        support, queries = episode[: way * shot], episode[way * shot :]

        def loss(weights, support=support, queries=queries):
            return loss_of(weights, support, shot, queries, 3, alpha)

        start = support.reshape(way, shot, -1).mean(axis=1)
        weights = adam(loss, start, steps=12, rate=0.05)
        expected = 3 * (queries @ weights.T - (weights**2).sum(axis=1) / 2)
        assert_same_softmax(scores, expected, 1e-6)


def test_near_one_it_is_tim_whose_terms_weigh_the_same():
    episodes = EpisodeBatch(features(3, 2), 3, 2, QUERIES)
    same = {"steps": 50, "learning_rate": 0.01}
    near = AlphaTIM(alpha=1 + 1e-7, **same).scores(episodes)
    limit = TIM(support_weight=1, marginal_weight=1, conditional_weight=1, **same).scores(episodes)
    torch.testing.assert_close(near, limit, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shot", "alpha"), [(1, 2.0), (2, 5.0), (5, 7.0), (10, 7.0)])
def test_alpha_that_nobody_set_is_that_of_the_authors_code(shot, alpha):
    episodes = EpisodeBatch(features(2, shot), 2, shot, QUERIES)
    found = AlphaTIM(steps=20).scores(episodes)
    assert torch.equal(found, AlphaTIM(alpha=alpha, steps=20).scores(episodes))
    assert not torch.equal(found, AlphaTIM(alpha=3, steps=20).scores(episodes))


def test_scores_are_finite_where_distributions_are_not_above_zero():
    points = 100 * features(3, 1).float()
    points[:, 4:] = points[:, :1]
    method = AlphaTIM(preprocessing=())
    assert torch.isfinite(method.scores(EpisodeBatch(points, 3, 1, QUERIES))).all()
