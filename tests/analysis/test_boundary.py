"""Boundaries between classes: lengths and curvatures that geometry knows."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import Voronoi

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


def circles(locations, *circles):
    """Boundaries around the class that is inside of circles (x, y, radius)."""
    side = np.linspace(-2, 2, locations)
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    inside = [radius**2 - ((grid - middle) ** 2).sum(axis=-1) for *middle, radius in circles]
    return boundary(np.stack([np.max(inside, axis=0), 0 * inside[0]]), side, side)


@pytest.mark.parametrize("step", [0.2, 0.4])
@pytest.mark.parametrize("locations", [42, 84])
@pytest.mark.parametrize("radius", [0.5, 1.2])
def test_a_circle_has_its_circumference_and_turns_one_over_its_radius(radius, locations, step):
    arcs = circles(locations, (0, 0, radius))
    assert len(arcs) == 1
    assert length(arcs) == pytest.approx(2 * np.pi * radius, rel=0.01)
    assert curvature(arcs, step) == pytest.approx(1 / radius, rel=0.01)


def test_a_circle_that_is_too_small_for_the_step_is_not_counted():
    """Its length of 2 pi / 5 is six steps of 0.2, and not three of 0.6."""
    arcs = circles(84, (-0.5, 0, 1), (1.5, 0, 0.2))
    assert len(arcs) == 2
    both = 4 * np.pi / (2 * np.pi * 1.2)
    assert curvature(arcs, 0.2) == pytest.approx(both, rel=0.01)
    assert curvature(arcs, 0.6) == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("locations", [42, 84])
def test_a_straight_line_does_not_turn_at_any_resolution(locations):
    side = np.linspace(-2, 2, locations)
    x, y = np.meshgrid(side, side)
    arcs = boundary(np.stack([x - 3 * y - 0.1, 0 * x]), side, side)
    assert length(arcs) == pytest.approx(4 * np.hypot(1, 1 / 3))
    assert curvature(arcs, 0.2) == pytest.approx(0, abs=1e-9)


def polygon_between(points, classes, window):
    """Length of the Voronoi edges between classes in the window, to a ten thousandth."""
    far = 50 * np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])
    cells = Voronoi(np.vstack([points, far]))
    total = 0.0
    for (one, other), ends in zip(cells.ridge_points, cells.ridge_vertices, strict=True):
        if max(one, other) < len(points) and classes[one] != classes[other]:
            start, end = cells.vertices[ends]
            along = start + (np.arange(100_000)[:, None] + 0.5) / 100_000 * (end - start)
            total += (np.abs(along) < window).all(axis=1).mean() * np.linalg.norm(end - start)
    return total


def test_between_nearest_points_it_is_the_voronoi_diagram_of_qhull_but_for_its_corners():
    random = np.random.default_rng(0)
    points, classes = random.normal(size=(24, 2)), np.arange(24) % 3
    exact, missing = polygon_between(points, classes, 2), []
    for locations in (41, 81, 161):
        side = np.linspace(-2, 2, locations)
        grid = np.stack(np.meshgrid(side, side), axis=-1)
        distances = ((grid[..., None, :] - points) ** 2).sum(axis=-1)
        nearest = np.stack([-distances[..., classes == label].min(axis=-1) for label in range(3)])
        missing.append(1 - length(boundary(nearest, side, side)) / exact)
    assert 0 < missing[-1] < 0.02
    assert all(0.3 < fine / coarse < 0.7 for coarse, fine in pairwise(missing))


def test_a_circle_that_a_third_class_cuts_stays_in_one_piece():
    """From x = radius / 2 on, the third takes it: four thirds of pi remain."""
    distances, radius = (GRID**2).sum(axis=-1), 1.2
    third = 1e3 * (GRID[..., 0] - radius / 2)
    arcs = boundary(np.stack([radius**2 - distances, 0 * distances, third]), X, Y)
    pieces = [arc for arc in arcs if arc.classes == (0, 1)]
    assert len(pieces) == 1
    assert length(pieces) == pytest.approx(4 / 3 * np.pi * radius, rel=0.01)
    assert curvature(pieces, 0.2) == pytest.approx(1 / radius, rel=0.01)


def test_a_zigzag_turns_at_every_corner():
    """Its corners are at locations of the grid."""
    corners = [(-2, 0), (-1, 0.5), (0, -0.5), (1, 0.5), (2, 0)]
    x = np.linspace(-2, 2, 41)
    height = np.interp(x, *np.transpose(corners))
    arcs = boundary(np.stack([Y[:, None] - height, 0 * Y[:, None] * height]), x, Y)
    lengths = [np.hypot(1, rise) for rise in (0.5, 1, 1, 0.5)]
    turning = 2 * (np.arctan(1) + np.arctan(0.5)) + 2 * np.arctan(1)
    assert length(arcs) == pytest.approx(sum(lengths))
    assert curvature(arcs, 0.1) * (length(arcs) - 0.1) == pytest.approx(turning, rel=0.02)


def test_one_class_everywhere_has_no_boundary():
    arcs = boundary(np.stack([0 * GRID[..., 0], 0 * GRID[..., 0] - 1]), X, Y)
    assert arcs == []
    assert (length(arcs), curvature(arcs, 0.1)) == (0, 0)
