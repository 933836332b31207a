"""Sinkhorn's algorithm as its rows and columns are scaled, in float64."""

import numpy as np


def sinkhorn(kernel, row_sums, column_sums, rounds=20_000, tolerance=1e-9):
    """The matrix with these sums that is `kernel` times a factor a row and a factor a column."""
    plan = np.array(kernel, dtype=np.float64)
    for _ in range(rounds):
        plan *= column_sums / plan.sum(0)
        sums = plan.sum(1)
        plan *= (row_sums / sums)[:, None]
        if np.abs(sums - row_sums).max() < tolerance:
            return plan
    raise AssertionError("choose features whose classes are not so far apart")


def kernel_of(points, means, scale):
    """exp(-scale * squared distance) of each point and each mean."""
    kernel = np.zeros((len(points), len(means)))
    for i, point in enumerate(points):
        for k, mean in enumerate(means):
            squared = sum((a - b) ** 2 for a, b in zip(point, mean, strict=True))
            kernel[i, k] = np.exp(-scale * squared)
    return kernel


def unit(rows):
    return np.array([row / np.sqrt(sum(row**2)) for row in np.asarray(rows)])


def episode_features(way, shot, queries, size, seed=0, spread=2.0):
    """Features `(N, size)` that are not negative, around the centers of their classes."""
    random = np.random.default_rng(seed)
    classes = [k for k in range(way) for _ in range(shot)] + [i % way for i in range(queries)]
    centers = random.uniform(1, 3, (way, size))
    noise = random.normal(0, spread, (len(classes), size))
    return np.maximum(centers[classes] + noise, 0)
