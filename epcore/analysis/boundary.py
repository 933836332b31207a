"""The boundaries between classes of a map of scores: where they run, how long, how curved."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from contourpy import contour_generator
from scipy.interpolate import RegularGridInterpolator


@dataclass(frozen=True)
class Arc:
    """A stretch of the boundary between two classes: vertices `(n, 2)` of a polyline."""

    classes: tuple[int, int]
    points: np.ndarray


def boundary(scores: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[Arc]:
    """The boundary between the classes with the highest score, inside the window of the grid.

    scores `(C, ny, nx)` of classes at the locations of x `(nx,)` and y `(ny,)`, ascending. Between
    two classes it is the contour along which both score the same, bilinear between locations, as
    far as no other class scores higher; so each stretch is there once, and three meet in a point.
    Where scores are linear, up to a term that classes share, the arcs are exact.
    """
    interpolate = RegularGridInterpolator((y, x), np.moveaxis(scores, 0, -1))
    arcs = []
    for first, second in combinations(range(len(scores)), 2):
        remaining = [k for k in range(len(scores)) if k not in (first, second)]
        for line in contour_generator(x, y, scores[first] - scores[second]).lines(0.0):
            values = interpolate(np.asarray(line)[:, ::-1].clip([y[0], x[0]], [y[-1], x[-1]]))
            highest = values[:, remaining].max(axis=1, initial=-np.inf)
            margins = values[:, [first, second]].min(axis=1) - highest
            arcs += [Arc((first, second), piece) for piece in _clip(np.asarray(line), margins)]
    return arcs


def _clip(line: np.ndarray, margins: np.ndarray) -> list[np.ndarray]:
    """The pieces of a polyline `(n, 2)` along which the margins `(n,)` are positive."""
    outside = np.flatnonzero(margins <= 0)
    if len(outside) and (line[0] == line[-1]).all():  # closed: begin outside, to cut no piece
        line, margins = (np.roll(a[:-1], -outside[0], axis=0) for a in (line, margins))
        line, margins = np.vstack([line, line[:1]]), np.append(margins, margins[0])
    pieces: list[np.ndarray] = []
    piece: list[np.ndarray] = []
    for (point, margin), (after, next_margin) in pairwise(zip(line, margins, strict=True)):
        if margin > 0:
            piece.append(point)
        if (margin > 0) != (next_margin > 0):
            piece.append(point + (after - point) * margin / (margin - next_margin))
        if piece and next_margin <= 0:
            pieces.append(np.array(piece))
            piece = []
    if piece:
        pieces.append(np.array([*piece, line[-1]]))
    return pieces


def length(arcs: Sequence[Arc]) -> float:
    """Total length, in the units of the window."""
    return float(sum(np.linalg.norm(np.diff(arc.points, axis=0), axis=1).sum() for arc in arcs))


def curvature(arcs: Sequence[Arc], step: float) -> float:
    """Mean absolute curvature along the arcs at a scale: radians per unit of length of the window.

    Each arc is cut into pieces of equal length, as near to `step` as a whole number of them can be;
    where two meet, the curvature is the angle between their chords over the length of a piece. So
    corners are turns within one step, and the grid that an arc was found on does not matter if it
    is clearly finer than that. Arcs of one piece and closed ones of two are too small to be seen.
    0 for straight lines and where there is no boundary, 1 / r for a circle. Where arcs meet,
    nothing turns.
    """
    turning = total = 0.0
    for arc in arcs:
        along = length([arc])
        closed, pieces = bool((arc.points[0] == arc.points[-1]).all()), round(along / step)
        if pieces < (3 if closed else 2):
            continue
        sides = np.diff(_resampled(arc.points, pieces), axis=0)
        angles = np.arctan2(sides[:, 1], sides[:, 0])
        if closed:
            angles = np.append(angles, angles[0])
        turns = (np.diff(angles) + np.pi) % (2 * np.pi) - np.pi
        turning += np.abs(turns).sum()
        total += len(turns) * along / pieces
    return turning / total if total else 0.0


def _resampled(points: np.ndarray, pieces: int) -> np.ndarray:
    """A polyline `(n, 2)` cut into pieces of equal length: their ends `(pieces + 1, 2)`."""
    along = np.append(0, np.linalg.norm(np.diff(points, axis=0), axis=1).cumsum())
    places = np.linspace(0, along[-1], pieces + 1)
    return np.stack([np.interp(places, along, points[:, axis]) for axis in (0, 1)], axis=1)
