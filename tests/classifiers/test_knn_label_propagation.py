"""Label propagation on nearest neighbors, by its formulas written as loops and by hand."""

import numpy as np
import pytest
import torch
from episode_batches import batch_of
from transport_reference import episode_features

from epcore.classifiers.knn_label_propagation import KNNLabelPropagation
from epcore.classifiers.solvers.neighbors import neighbors


def expected(features, way, shot, queries, settings):
    n = len(features)
    squared = [[sum((x - y) ** 2) for y in features] for x in features]
    pairs = [squared[i][j] for i in range(n) for j in range(n) if i != j]
    scale = 2 * settings.sigma**2 * sum(pairs) / len(pairs)
    nearest = [
        sorted(range(n), key=lambda j: squared[i][j])[: settings.neighbors] for i in range(n)
    ]
    graph = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if j in nearest[i] or i in nearest[j]:
                graph[i, j] = np.exp(-squared[i][j] / scale)
    matrix = np.eye(n)
    for i in range(n):
        for j in range(n):
            degrees = sum(graph[i]) * sum(graph[j])
            matrix[i, j] -= settings.alpha * graph[i, j] / np.sqrt(degrees)
    labels = np.zeros((n, way))
    for i in range(way * shot):
        labels[i, i // shot] = 1
    return (np.linalg.inv(matrix) @ labels)[way * shot : way * shot + queries]


@pytest.mark.parametrize(
    "changes", [{}, {"alpha": 0.3}, {"neighbors": 1}, {"neighbors": 50}, {"sigma": 0.6}], ids=str
)
@pytest.mark.parametrize(("way", "shot", "unlabeled"), [(3, 1, 0), (2, 3, 4)])
def test_scores_are_those_of_the_formulas(way, shot, unlabeled, changes):
    features = [episode_features(way, shot, 6 + unlabeled, 5, seed) for seed in range(3)]
    settings = KNNLabelPropagation(**{"neighbors": 4} | changes)
    found = settings.scores(batch_of(torch.tensor(np.stack(features)), way, shot, 6))
    for each, scores in zip(features, found.numpy(), strict=True):
        np.testing.assert_allclose(scores, expected(each, way, shot, 6, settings), rtol=1e-9)


def test_two_points_and_a_query_by_hand():
    """0 and 4 on a line, the query at 1: one neighbor each joins it to 0 only."""
    points = torch.tensor([[0.0], [4], [1]], dtype=torch.float64)
    classifier = KNNLabelPropagation(alpha=0.5, neighbors=2, sigma=1)
    found = classifier.scores(batch_of(points, 2, 1, 1))
    # 4 has the query as its nearest neighbor, so that edge is kept as well.
    mean = (16 + 1 + 9) / 3
    near, far = np.exp(-1 / (2 * mean)), np.exp(-9 / (2 * mean))
    degrees = 1 + near, 1 + far, 1 + near + far
    graph = np.array([[1, 0, near], [0, 1, far], [near, far, 1]])
    graph /= np.sqrt(np.outer(degrees, degrees))
    solved = np.linalg.inv(np.eye(3) - 0.5 * graph)
    np.testing.assert_allclose(found.numpy(), solved[2:, :2], rtol=1e-12)


def test_features_of_another_scale_and_size_have_the_same_scores():
    points = torch.tensor(episode_features(3, 2, 6, 5))
    twice = torch.cat([points, points], dim=-1) * 30
    classifier = KNNLabelPropagation()
    one, other = (classifier.scores(batch_of(each, 3, 2, 6)) for each in (points, twice))
    torch.testing.assert_close(one, other)


def test_equal_images_have_equal_scores():
    points = torch.ones(7, 3, dtype=torch.float64)
    scores = KNNLabelPropagation().scores(batch_of(points, 2, 2, 3))
    torch.testing.assert_close(scores, scores[:1, :1].expand(3, 2))


def test_neighbors_are_the_largest_entries_of_each_row():
    found = neighbors(torch.tensor([[3.0, 1, 2], [1, 2, 3], [-3, -1, -2]]), 2)
    assert found.tolist() == [[True, False, True], [False, True, True], [False, True, True]]
    assert neighbors(torch.rand(2, 3, 3), 9).all()
