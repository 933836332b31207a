"""iLPC, by the formulas written as loops, with the linear classifier trained by torch.optim."""

import numpy as np
import pytest
import torch
from torch import nn
from transport_reference import episode_features, sinkhorn, unit

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.ilpc import ILPC


def features_of(way, shot, queries, size, count=3):
    return [episode_features(way, shot, queries, size, seed) for seed in range(count)]


def preprocessed(features):
    points = unit(np.where(features < 0, -1, 1) * (np.abs(features) + 1e-6) ** 0.5)
    return unit(points - np.mean(points, 0))


def propagator(points, settings):
    n = len(points)
    cosines = points @ points.T
    graph = np.zeros((n, n))
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: -cosines[i, j])
        for j in others[: settings.neighbors]:
            edge = max(cosines[i, j], 0) ** 3
            graph[i, j] += edge
            graph[j, i] += edge
    degrees = [sum(row) or 1 for row in graph]
    matrix = np.eye(n)
    for i in range(n):
        for j in range(n):
            matrix[i, j] -= settings.alpha * graph[i, j] / np.sqrt(degrees[i] * degrees[j])
    return np.linalg.inv(matrix)


def losses(points, known, targets, steps):
    """Mean loss of each image over the training of a linear layer by torch's own SGD."""
    images, classes = torch.tensor(points), torch.tensor(targets)
    way = max(known.values()) + 1
    layer = nn.Linear(points.shape[1], way, dtype=torch.float64)
    means = [np.mean([points[i] for i, c in known.items() if c == k], 0) for k in range(way)]
    layer.weight.data = torch.tensor(unit(means))
    layer.bias.data.zero_()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    total = torch.zeros(len(points), dtype=torch.float64)
    for _ in range(steps):
        each = nn.functional.cross_entropy(layer(images), classes, reduction="none")
        optimizer.zero_grad()
        each.mean().backward()
        optimizer.step()
        total += each.detach() / steps
    return total.numpy()


def expected(features, way, shot, settings):
    """Probabilities `(queries, way)`, and the number of rounds."""
    points = preprocessed(features)
    matrix = propagator(points, settings)
    n, labeled = len(points), way * shot
    known = {i: i // shot for i in range(labeled)}
    lacking = [(n - labeled) / way] * way
    probabilities, rounds = np.zeros((n, way)), 0
    while len(known) < n:
        rounds += 1
        rest = [i for i in range(n) if i not in known]
        spread = np.zeros((n, way))
        for i, k in known.items():
            spread[:, k] += matrix[:, i]
        kernel = np.maximum(spread[rest], 1e-6) ** settings.power
        counts = np.maximum(lacking, 1e-6)
        counts *= len(rest) / sum(counts)
        probabilities[rest] = sinkhorn(kernel, np.ones(len(rest)), counts)
        if not settings.cleaning:
            break
        guesses = [known.get(i, int(np.argmax(probabilities[i]))) for i in range(n)]
        loss = losses(points, known, guesses, settings.cleaning)
        chosen = []
        for k in range(way):
            mine = sorted((i for i in rest if guesses[i] == k), key=lambda i: loss[i])
            chosen += mine[: settings.selected]
        if len(chosen) < way:
            break
        for i in chosen:
            known[i] = guesses[i]
            lacking[guesses[i]] -= 1
    return probabilities[labeled:], rounds


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"neighbors": 50},
        {"neighbors": 1},
        {"alpha": 0.3},
        {"power": 1},
        {"cleaning": 30, "selected": 2},
        {"cleaning": 30, "selected": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize(("way", "shot", "queries", "size"), [(3, 1, 9, 5), (2, 3, 11, 8)])
def test_probabilities_are_those_of_the_formulas(way, shot, queries, size, changes):
    features = features_of(way, shot, queries, size)
    settings = ILPC(**{"neighbors": 4} | changes)
    episodes = EpisodeBatch(torch.tensor(np.stack(features)), way, shot, queries)
    found = settings.scores(episodes).exp()
    for each, probabilities in zip(features, found.numpy(), strict=True):
        wanted, rounds = expected(each, way, shot, settings)
        assert rounds > 1 or not settings.cleaning
        np.testing.assert_allclose(probabilities, wanted, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 2, 60])
def test_losses_are_those_of_a_linear_classifier_and_its_optimizer(steps):
    """Which images have the smallest losses says little of a constant of the optimizer."""
    way, shot, queries = 3, 2, 9
    random = np.random.default_rng(0)
    labeled = np.repeat(np.arange(way), shot)
    points = [preprocessed(each) for each in features_of(way, shot, queries, 8)]
    guesses = random.integers(0, way, (len(points), queries))
    known = dict(enumerate(labeled.tolist()))
    wanted = [
        losses(each, known, [*labeled, *of_queries], steps)[way * shot :]
        for each, of_queries in zip(points, guesses, strict=True)
    ]
    one_hot = np.eye(way)
    labels = np.zeros((len(points), way * shot + queries, way))
    labels[:, : way * shot] = one_hot[labeled]
    gram = np.stack([each @ each.T for each in points])
    arguments = (torch.tensor(each) for each in (gram, labels, one_hot[guesses]))
    found = ILPC(cleaning=steps)._losses(*arguments)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9)


def test_episodes_with_different_numbers_of_rounds_are_each_as_if_alone():
    classifier, random = ILPC(cleaning=20, neighbors=3), np.random.default_rng(0)
    features = features_of(3, 1, 14, 5, count=8)
    numbers = {expected(each, 3, 1, classifier)[1] for each in features}
    assert len(numbers) > 1
    points = torch.tensor(np.stack(features))
    order = random.permutation(14)
    together = classifier.scores(EpisodeBatch(points, 3, 1, 14))
    for each, scores in zip(points, together, strict=True):
        torch.testing.assert_close(classifier.scores(EpisodeBatch(each, 3, 1, 14)), scores)
        turned = torch.cat([each[:3], each[3:][order]])
        turned_scores = classifier.scores(EpisodeBatch(turned, 3, 1, 14))
        torch.testing.assert_close(turned_scores, scores[order])


def test_images_without_neighbors_have_equal_chances():
    """A query that is opposite to all others has no edge, so that no label reaches it."""
    points = torch.tensor([[1.0, 0.1], [0.1, 1], [1, 0.2], [0.2, 1], [-1, -1], [-1, -1]])
    episodes = EpisodeBatch(points.double(), 2, 1, 4)
    scores = ILPC(preprocessing=(), neighbors=1).scores(episodes)
    assert torch.isfinite(scores).all()
    np.testing.assert_allclose(scores[2:].exp().numpy(), 0.5, atol=1e-6)
    assert scores[:2].argmax(dim=-1).tolist() == [0, 1]
