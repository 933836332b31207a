"""TIM by the formulas of its loss and of its alternating solver, written as loops."""

import math

import numpy as np
import pytest
import torch
from descent import adam, assert_same_softmax

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.tim import TIM

QUERIES = 5


def features(way, shot, size=3, count=2, seed=0):
    shape = (count, way * shot + QUERIES, size)
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 0.5, shape))


def named(parts):
    """Weights of the support's term, of the marginal entropy and of the other one, as settings."""
    return dict(
        zip(("support_weight", "marginal_weight", "conditional_weight"), parts, strict=True)
    )


def distribution(weights, image, scale):
    """Class probabilities of an image, as a list; of tensors if the weights are tensors."""
    exp = torch.exp if torch.is_tensor(weights) else math.exp
    odds = [
        exp(-scale / 2 * sum((x - w) ** 2 for x, w in zip(image, weight, strict=True)))
        for weight in weights
    ]
    return [each / sum(odds) for each in odds]


def entropy(probabilities):
    return -sum(p * torch.log(p) for p in probabilities)


def loss_of(weights, support, labels, queries, scale, parts):
    """TIM's loss; `parts` are the weights of the support's, the marginal and the other entropy."""
    errors = [
        -torch.log(distribution(weights, image, scale)[label])
        for image, label in zip(support, labels, strict=True)
    ]
    found = [distribution(weights, image, scale) for image in queries]
    mean = [sum(each) / len(found) for each in zip(*found, strict=True)]
    conditional = sum(entropy(each) for each in found) / len(found)
    return parts[0] * sum(errors) / len(errors) - parts[1] * entropy(mean) + parts[2] * conditional


def scores_of(weights, queries, scale):
    return [
        [scale * (np.dot(weight, image) - np.dot(weight, weight) / 2) for weight in weights]
        for image in queries
    ]


def means(support, way, shot):
    return support.reshape(way, shot, -1).mean(axis=1)


@pytest.mark.parametrize("parts", [(2.0, 0.3, 0.7), (1.0, 0.0, 0.2)])
@pytest.mark.parametrize(("way", "shot"), [(3, 1), (2, 3)])
def test_gradient_descent_is_adam_on_the_loss(way, shot, parts):
    points = features(way, shot)
    method = TIM(preprocessing=(), steps=12, scale=3, learning_rate=0.05, **named(parts))
    found = method.scores(EpisodeBatch(points, way, shot, QUERIES))
    labels = [image // shot for image in range(way * shot)]
    for episode, scores in zip(points.numpy(), found.numpy(), strict=True):
        support, queries = episode[: way * shot], episode[way * shot :]

        def loss(weights, support=support, queries=queries):
            return loss_of(weights, support, labels, queries, 3, parts)

        weights = adam(loss, means(support, way, shot), steps=12, rate=0.05)
        assert_same_softmax(scores, scores_of(weights, queries, 3), 1e-6)


def alternated(support, queries, way, shot, scale, parts, steps):
    """Weights by propositions of the paper, with all sums as loops."""
    support_weight, marginal, alpha = parts
    weights = means(support, way, shot)
    for _ in range(steps):
        old = [distribution(weights, image, scale) for image in queries]
        of_support = [distribution(weights, image, scale) for image in support]
        beta = marginal / (marginal + 1)
        sums = [sum(p[k] ** (1 + alpha) for p in old) for k in range(way)]
        shares = [[p[k] ** (1 + alpha) / sums[k] ** beta for k in range(way)] for p in old]
        shares = [[each / sum(row) for each in row] for row in shares]
        a, b = support_weight / (1 + alpha), len(support) / len(queries)
        moved = []
        for k, weight in enumerate(weights):
            total, size = np.zeros_like(weight), 0.0
            for i, image in enumerate(support):
                label = float(i // shot == k)
                total += a * (label * image + of_support[i][k] * (weight - image))
                size += a * label
            for image, share, p in zip(queries, shares, old, strict=True):
                total += b * (share[k] * image + p[k] * (weight - image))
                size += b * share[k]
            moved.append(total / size)
        weights = np.array(moved)
    return weights


@pytest.mark.parametrize("parts", [(2.0, 0.3, 0.7), (1.0, 0.0, 0.2)])
@pytest.mark.parametrize(("way", "shot"), [(3, 1), (2, 3)])
def test_alternating_steps_are_those_of_the_formulas(way, shot, parts):
    points = features(way, shot)
    method = TIM(preprocessing=(), solver="adm", steps=4, scale=3, **named(parts))
    found = method.scores(EpisodeBatch(points, way, shot, QUERIES))
    for episode, scores in zip(points.numpy(), found.numpy(), strict=True):
        support, queries = episode[: way * shot], episode[way * shot :]
        weights = alternated(support, queries, way, shot, 3, parts, steps=4)
        assert_same_softmax(scores, scores_of(weights, queries, 3), 1e-8)


def test_one_step_of_descent_by_hand():
    """Support -1 and 1, queries -2 and 2: weights part by the learning rate, Adam's first step."""
    points = torch.tensor([[-1.0], [1], [-2], [2]], dtype=torch.float64)
    method = TIM(preprocessing=(), steps=1, scale=1, learning_rate=0.25)
    scores = method.scores(EpisodeBatch(points, 2, 1, 2))
    half = 1.25**2 / 2
    expected = [[2.5 - half, -2.5 - half], [-2.5 - half, 2.5 - half]]
    np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-5)


def test_steps_that_nobody_set_are_those_of_the_authors_scripts():
    episodes = EpisodeBatch(features(3, 1), 3, 1, QUERIES)
    for solver, steps in (("gd", 1000), ("adm", 150)):
        found = TIM(solver=solver).scores(episodes)
        assert torch.equal(found, TIM(solver=solver, steps=steps).scores(episodes))


@pytest.mark.parametrize("solver", ["gd", "adm"])
def test_scores_are_finite_where_distributions_are_not_above_zero(solver):
    """Features of great size: all queries are surely of one class, exp(-scale * d^2) is 0."""
    points = 100 * features(3, 1).float()
    points[:, 4:] = points[:, :1]
    method = TIM(preprocessing=(), solver=solver)
    assert torch.isfinite(method.scores(EpisodeBatch(points, 3, 1, QUERIES))).all()
