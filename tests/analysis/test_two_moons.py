"""Two moons: points, projections and compactness, by hand or as other libraries have them."""

import numpy as np
import pytest
from reference import embeddings, propagator
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons

from epcore.analysis.two_moons import (
    compactness,
    deviation,
    projections,
    propagated,
    two_moons,
)


@pytest.fixture
def moons():
    return two_moons(300, 0.1, np.random.default_rng(0))


@pytest.mark.parametrize("count", [10, 11])
def test_without_noise_they_are_the_moons_of_scikit_learn(count):
    points, classes = two_moons(count, 0.0, np.random.default_rng(0))
    expected, labels = make_moons(count, noise=None, shuffle=False)
    assert points == pytest.approx(expected)
    assert (classes == labels).all()


def test_noise_has_the_deviation_that_is_asked_for():
    noisy, _ = two_moons(20000, 0.1, np.random.default_rng(0))
    clean, _ = two_moons(20000, 0.0, np.random.default_rng(0))
    assert (noisy - clean).std(axis=0) == pytest.approx([0.1, 0.1], abs=0.002)


def test_a_batch_of_all_points_is_propagation_of_all_points(moons):
    points = moons[0][::10]
    found = projections(points, len(points), 3, 0.5, np.random.default_rng(0))
    assert found == pytest.approx(np.repeat(embeddings(points)[:, None], 3, axis=1))


def test_of_three_points_by_hand():
    """On a line at 0, 1 and 3: d^2 = 1, 9, 4, each twice; P by Cramer's rule."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    mean = 14 / 3
    scale = np.sqrt(2 * ((1 - mean) ** 2 + (9 - mean) ** 2 + (4 - mean) ** 2) / 5)
    a, b, c = np.exp(-1 / scale), np.exp(-9 / scale), np.exp(-4 / scale)  # 0-1, 0-2, 1-2
    one, two, three = np.sqrt([a + b + 1e-4, a + c + 1e-4, b + c + 1e-4])
    p, q, r = 0.5 * a / (one * two), 0.5 * b / (one * three), 0.5 * c / (two * three)
    determinant = 1 - p * p - q * q - r * r - 2 * p * q * r
    first_row = np.array([1 - r * r, p + q * r, q + p * r]) / determinant
    found = projections(points, 3, 2, 0.5, np.random.default_rng(0))
    assert found[0, :, 0] == pytest.approx(first_row @ [0, 1, 3])
    variants = propagated(points, 0.5)
    assert variants["propagated"][0, 0] == pytest.approx(first_row @ [0, 1, 3])
    assert variants["row-normalized"][0, 0] == pytest.approx(
        first_row @ [0, 1, 3] / first_row.sum()
    )


def test_every_batch_holds_the_point_and_others_of_its_own(moons):
    """Eight points, batches of three: each projection is that of a point with two others."""
    points = moons[0][::40]
    found = projections(points, 3, 40, 0.5, np.random.default_rng(0))
    assert found.shape == (8, 40, 2)
    for point, projected in enumerate(found):
        possible = [
            embeddings(points[[point, i, j]])[0]
            for i in range(len(points)) for j in range(i)
            if point not in (i, j)
        ]  # fmt: skip
        nearest = cdist(projected, np.array(possible))
        assert nearest.min(axis=1) == pytest.approx(np.zeros(40), abs=1e-9)
        assert len(set(nearest.argmin(axis=1))) > 10


def test_the_three_ways_to_propagate_all_points(moons):
    points, _ = moons
    matrix = propagator(points, 0.5)
    variants = propagated(points, 0.5)
    assert variants["original"] is points
    assert variants["propagated"] == pytest.approx(matrix @ points)
    means = matrix @ points / matrix.sum(axis=1, keepdims=True)
    assert variants["row-normalized"] == pytest.approx(means)
    rescaled = variants["rescaled"]
    assert rescaled.mean(axis=0) == pytest.approx(points.mean(axis=0))
    assert rescaled.var(axis=0).sum() == pytest.approx(points.var(axis=0).sum())
    shape = np.cov(rescaled.T) / np.cov((matrix @ points).T)
    assert shape == pytest.approx(np.full((2, 2), shape[0, 0]))


def test_compactness_by_hand():
    """Two pairs, one apart; the pairs three apart."""
    points = np.array([[0.0, 0.0], [3.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
    found = compactness(points, np.array([0, 1, 0, 1]))
    assert found.total_variance == pytest.approx(0.25 + 2.25)
    assert found.within_variance == pytest.approx(0.25)
    assert found.nearest == pytest.approx(1)
    assert found.relative_within == pytest.approx(0.1)
    assert found.relative_nearest == pytest.approx(1 / np.sqrt(2.5))


def test_deviation_is_the_root_of_the_trace_of_the_covariance():
    points = np.random.default_rng(0).normal(size=(30, 2))
    assert deviation(points) == pytest.approx(np.sqrt(np.trace(np.cov(points.T))))


def test_the_authors_propagator_expands_the_cloud_and_normalized_rows_contract_it(moons):
    """What docs/paper-vs-code.md says of "denser and more compact", measured by others too."""
    points, classes = moons
    found = {name: compactness(each, classes) for name, each in propagated(points, 0.5).items()}
    assert found["original"].total_variance == pytest.approx(1.01, abs=0.02)
    assert found["propagated"].total_variance == pytest.approx(1.75, abs=0.05)
    assert found["row-normalized"].total_variance == pytest.approx(0.47, abs=0.01)
    assert found["propagated"].nearest > found["original"].nearest
    for name in ("propagated", "row-normalized"):
        assert found[name].relative_within < found["original"].relative_within
        assert found[name].relative_nearest < found["original"].relative_nearest


def test_projections_of_a_point_scatter_less_in_larger_batches(moons):
    points, _ = moons
    random = np.random.default_rng(0)
    scatter = [deviation(projections(points, size, 60, 0.5, random)[40]) for size in (16, 64, 128)]
    assert scatter == pytest.approx([0.19, 0.09, 0.055], rel=0.3)
    assert scatter[0] > scatter[1] > scatter[2]
