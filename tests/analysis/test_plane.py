"""Locations of the plane are classified by graphs of their own, as the formulas say."""

import numpy as np
import pytest
import torch
from reference import embeddings, propagator
from torch import nn

from epcore.analysis.plane import (
    Scene,
    by_label_propagation,
    by_nearest_point,
    by_prototypes,
    location_scores,
)
from epcore.propagation import EmbeddingPropagation

X, Y = np.linspace(-1, 1.3, 4), np.linspace(-2, 1, 3)


@pytest.fixture
def scene():
    return Scene.draw(5, 0.5, np.random.default_rng(0))


def nodes_at(scene, x, y):
    return np.vstack([scene.points, [x, y]])


@pytest.mark.parametrize("of_each", [2, 5])
@pytest.mark.parametrize("propagated", [False, True])
def test_label_propagation_at_a_location_is_that_of_points_and_location(scene, of_each, propagated):
    propagate = EmbeddingPropagation(0.5) if propagated else nn.Identity()
    labels = scene.labels(of_each)
    found = location_scores(scene.points, labels, X, Y, propagate, by_label_propagation(0.2))
    assert found.shape == (3, len(Y), len(X))
    known = np.vstack([labels.numpy(), np.zeros(3)])
    assert known.sum() == 3 * of_each
    for row, y in enumerate(Y):
        for column, x in enumerate(X):
            nodes = nodes_at(scene, x, y)
            nodes = embeddings(nodes) if propagated else nodes
            matrix = propagator(nodes, 0.2)
            scores = (matrix / matrix.sum(axis=1, keepdims=True) @ known)[-1]
            assert found[:, row, column] == pytest.approx(np.log(scores + 1e-6), rel=1e-6)


@pytest.mark.parametrize("propagated", [False, True])
def test_nearest_points_and_prototypes_are_those_among_embeddings(scene, propagated):
    propagate = EmbeddingPropagation(0.5) if propagated else nn.Identity()
    arguments = (scene.points, scene.labels(5), X, Y, propagate)
    nearest = location_scores(*arguments, by_nearest_point)
    prototypes = location_scores(*arguments, by_prototypes)
    for row, y in enumerate(Y):
        for column, x in enumerate(X):
            nodes = nodes_at(scene, x, y)
            nodes = embeddings(nodes) if propagated else nodes
            for label in range(3):
                own = nodes[:-1][scene.classes == label]
                closest = ((own - nodes[-1]) ** 2).sum(axis=1).min()
                assert -nearest[label, row, column] == pytest.approx(closest, abs=1e-9)
                to_mean = ((own.mean(axis=0) - nodes[-1]) ** 2).sum() / np.sqrt(2)
                assert -prototypes[label, row, column] == pytest.approx(to_mean, abs=1e-9)


def test_no_location_influences_another(scene):
    arguments = (EmbeddingPropagation(0.5), by_label_propagation(0.2))
    together = location_scores(scene.points, scene.labels(2), X, Y, *arguments)
    alone = location_scores(scene.points, scene.labels(2), X[1:2], Y[2:], *arguments)
    assert alone[:, 0, 0] == pytest.approx(together[:, 2, 1], abs=1e-12)


def test_points_lie_around_their_centers_and_only_the_first_of_each_class_have_labels():
    scene = Scene.draw(4000, 0.3, np.random.default_rng(1))
    for label, angle in enumerate(np.radians([90, 210, 330])):
        own = scene.points[scene.classes == label]
        assert own.mean(axis=0) == pytest.approx([np.cos(angle), np.sin(angle)], abs=0.02)
        assert own.std(axis=0) == pytest.approx([0.3, 0.3], abs=0.01)
    labels = Scene.draw(3, 0.3, np.random.default_rng(1)).labels(2)
    one = torch.eye(3, dtype=torch.float64)
    nobody = torch.zeros(3, dtype=torch.float64)
    expected = [row for label in range(3) for row in (one[label], one[label], nobody)]
    assert torch.equal(labels, torch.stack(expected))
