"""LaplacianShot by its formulas written as loops, and by hand."""

import math

import numpy as np
import pytest
import torch

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.laplacian_shot import LaplacianShot

QUERIES = 10


def features(way, shot, size=4, count=3):
    shape = (count, way * shot + QUERIES, size)
    return torch.from_numpy(np.random.default_rng(0).normal(0.3, 0.7, shape))


def softmax(values):
    odds = [math.exp(value) for value in values]
    return [each / sum(odds) for each in odds]


def cosine(one, other):
    return np.dot(one, other) / math.sqrt(np.dot(one, one) * np.dot(other, other))


def rectified(support, moved, way, shot, divided_by):
    old = [support[k * shot : (k + 1) * shot].mean(axis=0) for k in range(way)]
    images = [*support, *moved]
    weights = [softmax([10 * cosine(image, mean) for mean in old]) for image in images]
    classes = [number // shot for number in range(way * shot)]
    classes += [int(np.argmax(weight)) for weight in weights[way * shot :]]
    means = []
    for k in range(way):
        members = [number for number, label in enumerate(classes) if label == k]
        total = sum(weights[number][k] * images[number] for number in members)
        size = len(members)
        if divided_by == "classes":
            size = sum(weights[number][k] for number in members)
        means.append(total / size)
    return means


def brute_scores(points, way, shot, settings, ends_early=False):
    support, queries = points[: way * shot], points[way * shot :]
    means = [support[k * shot : (k + 1) * shot].mean(axis=0) for k in range(way)]
    if settings.rectification != "none":
        queries = queries + support.mean(axis=0) - queries.mean(axis=0)
        means = rectified(support, queries, way, shot, settings.rectification)
    unary = [[sum((q - mean) ** 2) for mean in means] for q in queries]
    nearest = []
    for i, one in enumerate(queries):
        others = [(sum((one - other) ** 2), j) for j, other in enumerate(queries) if j != i]
        nearest.append([j for _, j in sorted(others)[: settings.neighbors]])
    logits = [[-a for a in row] for row in unary]
    energy = math.inf
    for step in range(settings.steps):
        y = [softmax(row) for row in logits]
        logits = [
            [-unary[i][k] + settings.weight * sum(y[j][k] for j in nearest[i]) for k in range(way)]
            for i in range(len(queries))
        ]
        y = [softmax(row) for row in logits]
        before, energy = energy, 0.0
        for i in range(len(queries)):
            for k in range(way):
                pairwise = settings.weight * sum(y[j][k] for j in nearest[i])
                energy += y[i][k] * (math.log(y[i][k]) + unary[i][k] - pairwise)
        if ends_early and step > 1 and abs(energy - before) <= 1e-6 * abs(before):
            break
    return logits


@pytest.mark.parametrize("rectification", ["classes-by-count", "classes", "none"])
@pytest.mark.parametrize(("way", "shot"), [(3, 1), (2, 4)])
def test_scores_are_those_of_the_formulas(way, shot, rectification):
    points = features(way, shot)
    for other in ({}, {"weight": 1.5, "neighbors": 4, "steps": 3}, {"weight": 0.0}):
        method = LaplacianShot(preprocessing=(), rectification=rectification, **other)
        found = method.scores(EpisodeBatch(points, way, shot, QUERIES))
        for episode, scores in zip(points.numpy(), found.numpy(), strict=True):
            expected = brute_scores(episode, way, shot, method)
            np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


def test_the_authors_earlier_end_changes_little():
    points, method = features(3, 1, count=20), LaplacianShot(preprocessing=("unit",))
    found = method.scores(EpisodeBatch(points, 3, 1, QUERIES)).numpy()
    unit = points.numpy() / np.linalg.norm(points.numpy(), axis=-1, keepdims=True)
    ended = [brute_scores(episode, 3, 1, method, ends_early=True) for episode in unit]
    np.testing.assert_allclose(found, ended, atol=0.01)
    assert (found.argmax(axis=-1) == np.argmax(ended, axis=-1)).all()


def test_one_step_on_a_line_by_hand():
    """Classes at -1 and 1, queries 0, 0.1 and 2: neighbors of each are 0.1, 0 and 0.1."""
    points = torch.tensor([[-1.0], [1], [0], [0.1], [2]], dtype=torch.float64)
    method = LaplacianShot(preprocessing=(), weight=2, neighbors=1, steps=1, rectification="none")
    scores = method.scores(EpisodeBatch(points, 2, 1, 3))
    right = 1 / (1 + math.exp(0.81 - 1.21))
    expected = [
        [-1 + 2 * (1 - right), -1 + 2 * right],
        [-1.21 + 1, -0.81 + 1],
        [-9 + 2 * (1 - right), -1 + 2 * right],
    ]
    np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-12)


def test_neighbors_outvote_a_query_that_is_nearer_to_another_class():
    points = torch.tensor([[-1.0], [1], [0.05], [-0.3], [-0.35]], dtype=torch.float64)
    episodes = EpisodeBatch(points, 2, 1, 3)
    for weight, expected in ((0, [1, 0, 0]), (2, [0, 0, 0])):
        method = LaplacianShot(preprocessing=(), weight=weight, rectification="none")
        assert method.scores(episodes).argmax(dim=-1).tolist() == expected


def test_more_neighbors_than_there_are_queries_are_all_of_them():
    episodes = EpisodeBatch(features(3, 1), 3, 1, QUERIES)
    found = LaplacianShot(preprocessing=(), neighbors=50).scores(episodes)
    assert torch.equal(found, LaplacianShot(preprocessing=(), neighbors=9).scores(episodes))
