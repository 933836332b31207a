"""The most likely weights under the base classes' prior, by SciPy on the objective as printed."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import torch

from epcore.classifiers.discriminative import Discriminative
from epcore.classifiers.episodes import EpisodeBatch

QUERIES = 7


def drawn(way, shot, size, spread, count=2):
    random = np.random.default_rng(0)
    points = torch.from_numpy(random.normal(1, 1, (count, way * shot + QUERIES, size)))
    base = torch.from_numpy(random.normal(0.3, spread, (11, size)))
    return EpisodeBatch(points, way, shot, QUERIES, base_weights=base)


def probabilities(points, weights):
    powers = np.exp(points @ weights.T)
    return powers / powers.sum(axis=1, keepdims=True)


def brute(points, way, shot, base):
    """Class distributions of queries, from w_k that minimize loss plus prior; the mean is kept."""
    n, mean = way * shot, base.mean(axis=0)
    variance = np.mean([(b - m) ** 2 for row in base for b, m in zip(row, mean, strict=True)])
    labels = np.arange(n) // shot

    def objective(flat):
        weights = flat.reshape(way, -1)
        likelihood = np.log(probabilities(points[:n], weights)[np.arange(n), labels]).sum()
        return sum(((w - mean) ** 2).sum() for w in weights) / (2 * variance) - likelihood

    start = np.zeros(way * points.shape[1])
    found = scipy.optimize.minimize(objective, start, method="BFGS", options={"gtol": 1e-7})
    return probabilities(points[n:], found.x.reshape(way, -1))


@pytest.mark.parametrize("spread", [0.2, 2])
@pytest.mark.parametrize(("way", "shot", "size"), [(3, 1, 4), (2, 3, 3), (3, 3, 2)])
def test_class_distributions_are_those_of_the_most_likely_weights(way, shot, size, spread):
    episodes = drawn(way, shot, size, spread)
    found = Discriminative().scores(episodes).softmax(dim=-1)
    for points, each in zip(episodes.points.numpy(), found.numpy(), strict=True):
        expected = brute(points, way, shot, episodes.base_weights.numpy())
        np.testing.assert_allclose(each, expected, atol=1e-5)


def test_only_the_variance_of_the_base_weights_matters():
    episodes = drawn(3, 2, 5, 1.0)
    scores = Discriminative().scores(episodes)
    shifted = replace(episodes, base_weights=episodes.base_weights + torch.arange(5))
    torch.testing.assert_close(Discriminative().scores(shifted), scores)
    wider = replace(episodes, base_weights=3 * episodes.base_weights)
    assert (Discriminative().scores(wider).std() > 1.2 * scores.std()).item()


@pytest.mark.parametrize(
    ("base", "message"), [(None, "takes the weights"), (torch.ones(3, 5), "that differ")]
)
def test_base_weights_that_say_nothing_are_refused(base, message):
    with pytest.raises(ValueError, match=message):
        Discriminative().scores(replace(drawn(3, 2, 5, 1.0), base_weights=base))
