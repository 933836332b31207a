"""Small pure functions of statistics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from epcore.report.evidence import student

Interval = Literal["student", "normal"]


@dataclass(frozen=True)
class Mean:
    """A mean, and the half width of its 95 % interval."""

    value: float
    interval: float


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
    return mean_with_interval(np.array([np.mean(episodes) for episodes in values]))


def mean_with_interval(values: np.ndarray, interval: Interval = "student") -> Mean:
    """Mean of independent observations `(n,)`, n >= 2, with its 95 % interval.

    student: half width `t(0.975, n - 1) * s / sqrt(n)` with the unbiased deviation s, as the
    authors' code computes it. normal: `1.96 * s / sqrt(n)` with the deviation of the n
    values themselves, as the code of wDAE-GNN does on ImageNet-FS.
    """
    if interval == "normal":
        half_width = 1.96 * np.std(values) / np.sqrt(len(values))
        return Mean(float(np.mean(values)), float(half_width))
    estimate = student(values)
    return Mean(estimate.value, estimate.half_width)
