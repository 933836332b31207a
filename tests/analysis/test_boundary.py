"""Boundaries between classes: lengths and curvatures that geometry knows."""

import numpy as np
import pytest

from epcore.analysis.boundary import boundary, curvature, length

# No location lies on a boundary of the tests below.
X, Y = np.linspace(-2, 2, 42), np.linspace(-1.5, 1.5, 35)
GRID = np.stack(np.meshgrid(X, Y), axis=-1)


def to_prototypes(*prototypes):
    """Scores (C, ny, nx): minus the squared distance to each prototype."""
    return np.stack([-((GRID - prototype) ** 2).sum(axis=-1) for prototype in prototypes])


def test_between_two_prototypes_runs_their_bisector_from_edge_to_edge():
    (arc,) = boundary(to_prototypes((0.3, 0), (-0.5, 0)), X, Y)
    assert arc.classes == (0, 1)
    assert arc.points[:, 0] == pytest.approx(-0.1)
    assert length([arc]) == pytest.approx(3)
    assert curvature([arc], 0.1) == pytest.approx(0, abs=1e-9)


def test_an_oblique_bisector_is_as_long_as_pythagoras_says():
    """The bisector of a and -a is orthogonal to a: y = -x / 2, from x = -2 to x = 2."""
    arcs = boundary(to_prototypes((0.2, 0.4), (-0.2, -0.4)), X, Y)
    assert length(arcs) == pytest.approx(np.hypot(4, 2))
    assert curvature(arcs, 0.1) == pytest.approx(0, abs=1e-9)


def test_between_three_prototypes_run_three_rays_from_the_point_as_far_from_all():
    """At 90, 210 and 330 degrees the rays leave at 30, 150 and 270: the middle is 0.02, 0.01."""
    middle = np.array([0.02, 0.01])
    angles = np.radians([90, 210, 330])
    prototypes = middle + np.stack([np.cos(angles), np.sin(angles)], axis=1)
    arcs = boundary(to_prototypes(*prototypes), X, Y)
    right, left = ((edge - middle[0]) / np.cos(np.pi / 6) for edge in (2, -2))
    rays = {(0, 2): right, (0, 1): -left, (1, 2): middle[1] + 1.5}
    assert {arc.classes: length([arc]) for arc in arcs} == pytest.approx(rays)
    ends = np.concatenate([arc.points[[0, -1]] for arc in arcs])
    assert (np.linalg.norm(ends - middle, axis=1) < 1e-9).sum() == 3
    assert curvature(arcs, 0.1) == pytest.approx(0, abs=1e-9)


def test_where_a_third_class_is_highest_there_is_no_boundary_between_the_others():
    """Three strips: the outer two would meet in the middle of the third."""
    x = GRID[..., 0]
    arcs = boundary(np.stack([-x - 0.5, 0 * x, x - 0.5]), X, Y)
    assert {arc.classes: float(arc.points[:, 0].mean()) for arc in arcs} == pytest.approx(
        {(0, 1): -0.5, (1, 2): 0.5}
    )
    assert length(arcs) == pytest.approx(6)


@pytest.mark.parametrize("radius", [0.5, 1.2])
def test_a_circle_has_its_circumference_and_turns_one_over_its_radius(radius):
    distances = (GRID**2).sum(axis=-1)
    arcs = boundary(np.stack([radius**2 - distances, 0 * distances]), X, Y)
    assert len(arcs) == 1
    assert length(arcs) == pytest.approx(2 * np.pi * radius, rel=0.01)
    assert curvature(arcs, 0.1) == pytest.approx(1 / radius, rel=0.02)


def test_a_circle_that_a_third_class_cuts_stays_in_one_piece():
    """From x = radius / 2 on, the third takes it: four thirds of pi remain."""
    distances, radius = (GRID**2).sum(axis=-1), 1.2
    third = 1e3 * (GRID[..., 0] - radius / 2)
    arcs = boundary(np.stack([radius**2 - distances, 0 * distances, third]), X, Y)
    pieces = [arc for arc in arcs if arc.classes == (0, 1)]
    assert len(pieces) == 1
    assert length(pieces) == pytest.approx(4 / 3 * np.pi * radius, rel=0.01)
    assert curvature(pieces, 0.1) == pytest.approx(1 / radius, rel=0.05)


def test_a_zigzag_turns_at_every_corner():
    """Its corners are at locations of the grid."""
    corners = [(-2, 0), (-1, 0.5), (0, -0.5), (1, 0.5), (2, 0)]
    x = np.linspace(-2, 2, 41)
    height = np.interp(x, *np.transpose(corners))
    arcs = boundary(np.stack([Y[:, None] - height, 0 * Y[:, None] * height]), x, Y)
    lengths = [np.hypot(1, rise) for rise in (0.5, 1, 1, 0.5)]
    turning = 2 * (np.arctan(1) + np.arctan(0.5)) + 2 * np.arctan(1)
    assert length(arcs) == pytest.approx(sum(lengths))
    assert curvature(arcs, 0.1) * length(arcs) == pytest.approx(turning, rel=0.02)


def test_one_class_everywhere_has_no_boundary():
    arcs = boundary(np.stack([0 * GRID[..., 0], 0 * GRID[..., 0] - 1]), X, Y)
    assert arcs == []
    assert (length(arcs), curvature(arcs, 0.1)) == (0, 0)
