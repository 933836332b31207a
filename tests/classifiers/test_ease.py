"""EASE and SIAMESE, by the formulas written as loops, and as the authors' transport goes."""

import numpy as np
import pytest
import torch
from transport_reference import episode_features, kernel_of, unit

from epcore.classifiers.ease import EASE
from epcore.classifiers.episodes import EpisodeBatch


def normalized(graph):
    n = len(graph)
    degrees = [1e-4 + sum(graph[i][j] for j in range(n)) for i in range(n)]
    return np.array(
        [[graph[i][j] / np.sqrt(degrees[i] * degrees[j]) for j in range(n)] for i in range(n)]
    )


def subspace(points, rank, contrast, dimensions):
    """Projected points, from an SVD of them. QR leaves no more columns than there are points."""
    n = len(points)
    points = np.linalg.qr(points.T)[1].T
    left = np.linalg.svd(points)[0][:, :rank]
    graph = [[0 if i == j else abs(left[i] @ left[j]) for j in range(n)] for i in range(n)]
    everything = [[float(i != j) for j in range(n)] for i in range(n)]
    matrix = points.T @ (contrast * normalized(everything) - normalized(graph)) @ points
    _, axes = np.linalg.eigh(matrix)
    return points @ axes[:, :dimensions]


def transport(kernel, labels, counts, rounds=3000):
    """Balanced plan of all rows; those of the support are reset to their classes in every round."""
    plan = kernel.copy()
    plan /= plan.sum()
    for _ in range(rounds):
        for axis in (1, 0):
            sums = plan.sum(axis, keepdims=True)
            plan = plan / sums if axis else plan * (counts / sums)
            plan[: len(labels)] = labels
    assert np.abs(plan.sum(0) - counts).max() < 1e-6
    return plan


def expected(features, way, shot, settings):
    """Probabilities `(queries, way)`."""
    points = subspace(unit(features), settings.rank, settings.contrast, settings.dimensions)
    points = unit(points)
    labels = np.repeat(np.eye(way), shot, axis=0)
    count = len(points) / way
    means = np.array([np.mean(points[k * shot : (k + 1) * shot], 0) for k in range(way)])

    def plan():
        return transport(kernel_of(points, means, settings.scale), labels, count)

    for _ in range(settings.steps):
        weights = plan()
        for k in range(way):
            estimate = sum(w * x for w, x in zip(weights[:, k], points, strict=True)) / count
            means[k] += settings.rate * (estimate - means[k])
    return plan()[way * shot :]


def episodes_of(features, way, shot, queries):
    return EpisodeBatch(torch.tensor(np.stack(features)), way, shot, queries)


@pytest.mark.parametrize(
    "changes",
    [{}, {"rank": 2}, {"contrast": 0.5}, {"dimensions": 2}, {"scale": 4}],
    ids=str,
)
@pytest.mark.parametrize(("way", "shot", "queries", "size"), [(3, 1, 7, 5), (2, 2, 6, 14)])
def test_probabilities_are_those_of_the_formulas(way, shot, queries, size, changes):
    features = [episode_features(way, shot, queries, size, seed) for seed in range(2)]
    small = {"dimensions": 4, "steps": 3, "rank": 3, "rate": 0.5, "scale": 2}
    settings = EASE(**small | changes)
    found = settings.scores(episodes_of(features, way, shot, queries)).exp()
    for each, probabilities in zip(features, found.numpy(), strict=True):
        np.testing.assert_allclose(probabilities, expected(each, way, shot, settings), atol=1e-5)


def test_all_directions_are_no_projection():
    """Then it is PT-MAP's algorithm on unit features, whatever the graphs are."""
    features = [episode_features(3, 2, 9, 5)]
    episodes = episodes_of(features, 3, 2, 9)
    scores = [
        EASE(rank=rank, contrast=contrast).scores(episodes) for rank, contrast in [(1, 0), (4, 9)]
    ]
    torch.testing.assert_close(*scores)


def test_the_common_mean_is_the_first_direction_left_out():
    """The graph that joins all images has one positive eigenvalue, of the vector of ones."""
    points = torch.tensor(episode_features(3, 2, 9, 6))
    points = torch.nn.functional.normalize(points + 5, dim=-1)
    left = EASE(dimensions=5)._projected(points)
    assert left.shape == (15, 5)
    assert left.mean(dim=0).norm() < 0.05 * points.mean(dim=0).norm()
