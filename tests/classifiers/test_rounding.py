"""What rounding may not change: far from zero, in half precision, under autocast."""

from dataclasses import replace

import pytest
import torch
from test_invariants import ALL, drawn

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.distances import squared_distances

HALVES = (torch.float16, torch.bfloat16)
# What scores depend on is where features lie, not only how far apart they are.
OF_DIRECTIONS = {
    "baseline",
    "baseline-plus-plus",
    "cosine-matching",
    "cosine-means",
    "transmatch-head",
}
OF_PRODUCTS = {"ridge", "svm", "logistic-regression", "discriminative", "self-training"}
OF_SUBSPACES = {"ease", "ilpc"}


def many(shift):
    """More images than torch computes distances of one by one, moved by `shift`, exactly."""
    random = torch.Generator().manual_seed(0)
    centers = torch.randn((6, 4, 24), generator=random, dtype=torch.float64)
    labels = torch.cat([torch.arange(4).repeat_interleave(5), torch.arange(60) % 4])
    noise = torch.randn((6, 80, 24), generator=random, dtype=torch.float64)
    points = (0.3 * centers[:, labels] + noise).mul(1024).round() / 1024 + shift
    return EpisodeBatch(points, 4, 5, 60, base_mean=torch.zeros(24, dtype=torch.float64))


def raw(classifier):
    """Without steps that depend on where features lie."""
    return classifier.model_copy(update={"preprocessing": ()})


@pytest.mark.parametrize("shift", [10, 100])
@pytest.mark.parametrize("name", sorted(set(ALL) - OF_DIRECTIONS - OF_PRODUCTS - OF_SUBSPACES))
def test_features_far_from_zero_are_scored_as_in_float64(name, shift):
    classifier, episodes = raw(ALL[name]), many(shift)
    single = replace(episodes, points=episodes.points.float(), base_mean=None)
    assert torch.equal(single.points.double(), episodes.points)
    scores, expected = classifier.scores(single), classifier.scores(episodes)
    torch.testing.assert_close(scores.double(), expected, rtol=1e-3, atol=1e-3)


def test_squared_distances_are_those_of_single_pairs():
    random = torch.Generator().manual_seed(0)
    points = torch.randn((2, 40, 7), generator=random).mul(1024).round() / 1024 + 100
    others = torch.cat([points[:, 3:5], points[:, :30] + 0.5], dim=1)
    expected = torch.zeros(2, 40, 32, dtype=torch.float64)
    for batch in range(2):
        for i in range(40):
            for j in range(32):
                difference = points[batch, i].double() - others[batch, j].double()
                expected[batch, i, j] = difference.square().sum()
    found = squared_distances(points, others)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(found == 0, expected == 0)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("classifier", ALL.values(), ids=lambda each: each.name)
def test_half_precision_is_scored_in_float32(classifier, dtype):
    episodes, _ = drawn(3, 0.5)
    half = replace(episodes, points=episodes.points.to(dtype))
    scores = classifier.scores(half)
    assert scores.dtype == torch.float32
    single = replace(half, points=half.points.float())
    assert torch.equal(scores, classifier.scores(single))


@pytest.mark.parametrize("classifier", ALL.values(), ids=lambda each: each.name)
def test_autocast_does_not_lower_the_precision(classifier):
    episodes, _ = drawn(3, 0.5)
    single = replace(episodes, points=episodes.points.float())
    expected = classifier.scores(single)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(classifier.scores(single), expected)
