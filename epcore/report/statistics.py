"""Small pure functions of statistics."""

from collections.abc import Sequence
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


def paired(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """`values - others` over the same episodes `(n,)`.

    Raises:
        ValueError: if there are more of one than of the other.
    """
    if values.shape != others.shape:
        raise ValueError(f"{len(values)} episodes cannot be paired with {len(others)}")
    difference: np.ndarray = values - others
    return difference


def over_trainings(values: Sequence[np.ndarray], interval: Interval = "student") -> Mean:
    """Mean over trainings of the means over episodes `(n,)`, with its 95 % interval.

    The interval is Student's over the trainings' means, of m trainings with m - 1 degrees of
    freedom: what another training would give. Of one training it is over its episodes, and says
    nothing of another training.
    """
    if len(values) == 1:
        return mean_with_interval(values[0], interval)
    return mean_with_interval(np.array([np.mean(each) for each in values]))


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
