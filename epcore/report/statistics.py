"""Small pure functions of statistics."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

Interval = Literal["student", "normal"]


@dataclass(frozen=True)
class Mean:
    """A mean, the half width of its 95 % interval and the number of observations."""

    value: float
    interval: float
    count: int


def paired_difference(
    values: np.ndarray, others: np.ndarray, interval: Interval = "student"
) -> Mean:
    """Mean of `values - others` over the same episodes `(n,)`, with its interval.

    Raises:
        ValueError: if there are more of one than of the other.
    """
    if values.shape != others.shape:
        raise ValueError(f"{len(values)} episodes cannot be paired with {len(others)}")
    return mean_with_interval(values - others, interval)


def mean_with_interval(values: np.ndarray, interval: Interval = "student") -> Mean:
    """Mean of independent observations `(n,)`, n >= 2, with its 95 % interval.

    student: half width `t(0.975, n - 1) * s / sqrt(n)` with the unbiased deviation s, as the
    authors' code computes it (A42). normal: `1.96 * s / sqrt(n)` with the deviation of the n
    values themselves, as the code of wDAE-GNN does on ImageNet-FS.
    """
    count = len(values)
    if interval == "normal":
        half_width = 1.96 * np.std(values) / np.sqrt(count)
        return Mean(float(np.mean(values)), float(half_width), count)
    error = np.std(values, ddof=1) / np.sqrt(count)
    # The quantile without scipy.stats, whose import takes longer than an aggregation.
    quantile = special.stdtrit(count - 1, 0.975)
    return Mean(float(np.mean(values)), float(quantile * error), count)
