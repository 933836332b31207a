"""PT-MAP, by its formulas written as loops, with Sinkhorn's algorithm in plain form."""

import numpy as np
import pytest
import torch
from transport_reference import episode_features, kernel_of, sinkhorn, unit

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.pt_map import PTMAP


def expected(features, way, shot, scale, rate, steps):
    """Probabilities `(queries, way)`."""
    points = unit((features + 1e-6) ** 0.5)
    support, query = np.split(points, [way * shot])
    support, query = unit(support - np.mean(support, 0)), unit(query - np.mean(query, 0))
    means = np.array([sum(support[k * shot : (k + 1) * shot]) / shot for k in range(way)])
    each = len(query) / way

    def plan():
        kernel = kernel_of(query, means, scale)
        return sinkhorn(kernel, np.ones(len(query)), np.full(way, each))

    for _ in range(steps):
        weights = plan()
        for k in range(way):
            total = sum(support[k * shot : (k + 1) * shot])
            for x, weight in zip(query, weights[:, k], strict=True):
                total = total + weight * x
            estimate = total / (shot + sum(weights[:, k]))
            means[k] += rate * (estimate - means[k])
    return plan()


@pytest.mark.parametrize(
    "settings",
    [{}, {"scale": 3}, {"rate": 0.7}, {"rate": 1, "steps": 2}, {"steps": 0}],
    ids=str,
)
@pytest.mark.parametrize(("way", "shot", "queries", "size"), [(3, 1, 7, 5), (2, 4, 6, 9)])
def test_probabilities_are_those_of_the_formulas(way, shot, queries, size, settings):
    features = [episode_features(way, shot, queries, size, seed) for seed in range(3)]
    episodes = EpisodeBatch(torch.tensor(np.stack(features)), way, shot, queries)
    classifier = PTMAP(**settings)
    found = classifier.scores(episodes).exp()
    used = (classifier.scale, classifier.rate, classifier.steps)
    for each, probabilities in zip(features, found.numpy(), strict=True):
        np.testing.assert_allclose(probabilities, expected(each, way, shot, *used), atol=1e-6)


def test_each_class_gets_the_same_number_of_queries_whatever_their_classes_are():
    """All queries lie around the first class."""
    features = episode_features(3, 2, 0, 5)
    random = np.random.default_rng(1)
    queries = features[:1] + random.uniform(0, 0.5, (12, 5))
    points = torch.tensor(np.concatenate([features, queries]))
    found = PTMAP().scores(EpisodeBatch(points, 3, 2, 12)).exp()
    np.testing.assert_allclose(found.sum(dim=-2).numpy(), [4, 4, 4], atol=1e-6)


def test_one_step_on_a_line_by_hand():
    """Means -1 and 1, queries -1 and 2, so that the plan is [[p, 1 - p], [1 - p, p]]."""
    points = torch.tensor([[-1.0], [1], [-1], [2]], dtype=torch.float64)

    def p_of(first, second):
        """The odds of p are the root of those of the queries, one by the other's inverse."""
        near, far = (-1 - second) ** 2 - (-1 - first) ** 2, (2 - first) ** 2 - (2 - second) ** 2
        return 1 / (1 + np.exp(-0.3 * (near + far) / 2))

    p = p_of(-1, 1)
    # Each class has one image of support, and one query shared among the two.
    first, second = (-1 - p + 2 * (1 - p)) / 2, (1 - (1 - p) + 2 * p) / 2
    for rate, means in [(1, (first, second)), (0.5, ((-1 + first) / 2, (1 + second) / 2))]:
        classifier = PTMAP(preprocessing=(), scale=0.3, rate=rate, steps=1)
        found = classifier.scores(EpisodeBatch(points, 2, 1, 2)).exp()
        p = p_of(*means)
        np.testing.assert_allclose(found.numpy(), [[p, 1 - p], [1 - p, p]], atol=1e-8)
