"""Estimates and how sure they are: of means, of weighted sums of cells, of several at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

LEVEL = 0.025  # of each side: an interval of 95 % that lies on that side

# A cell's weight in a sum, its scores `(n,)` of every seed, and what was drawn.
Term = tuple[float, Sequence[np.ndarray], str]


@dataclass(frozen=True)
class Estimate:
    """A value, its standard error and the degrees of freedom of its t distribution."""

    value: float
    error: float
    degrees: float

    def above(self, bound: float, strictly: bool = True) -> float:
        """p-value against its not being above: how likely so high a value is of a true `bound`.

        Without any error it is 0 or 1; `strictly` says what the bound itself is.
        """
        if self.error == 0:
            return 0.0 if self.value > bound or (not strictly and self.value == bound) else 1.0
        distance = (self.value - bound) / self.error
        return float(special.stdtr(self.degrees, -distance))

    def below(self, bound: float, strictly: bool = True) -> float:
        """p-value against the estimate's not being below `bound`; see `above`."""
        return Estimate(-self.value, self.error, self.degrees).above(-bound, strictly)

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval."""
        # Without scipy.stats, whose import takes longer than an aggregation.
        return float(special.stdtrit(self.degrees, 1 - LEVEL)) * self.error


def student(values: np.ndarray) -> Estimate:
    """The mean of independent observations `(n,)`, n >= 2, with the unbiased deviation.

    The authors' code computes the same interval, `t(0.975, n - 1) * s / sqrt(n)`.
    """
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return Estimate(float(np.mean(values)), float(error), len(values) - 1)


def normal(values: np.ndarray) -> Estimate:
    """The mean of observations `(n,)` with the interval of wDAE-GNN's code on ImageNet-FS.

    That is `1.96 * s / sqrt(n)` with the deviation of the n values themselves.
    """
    half_width = 1.96 * float(np.std(values) / np.sqrt(len(values)))
    return of_printed([float(np.mean(values))], [half_width])


def over_trainings(values: Sequence[np.ndarray]) -> Estimate:
    """The mean over trainings of the means over episodes `(n,)`.

    Its interval is Student's over the trainings' means: what another training would give. Of one
    training it is over its episodes, and says nothing of another training.
    """
    if len(values) == 1:
        return student(values[0])
    return student(np.array([np.mean(episodes) for episodes in values]))


def of_printed(values: Sequence[float], half_widths: Sequence[float]) -> Estimate:
    """The sum of printed numbers with 95 % intervals, as of independent episodes."""
    error = float(np.sqrt(np.sum(np.square(half_widths)))) / float(special.ndtri(1 - LEVEL))
    return Estimate(float(np.sum(values)), error, np.inf)


def without_error(values: Sequence[float]) -> Estimate:
    """The sum of decimal numbers as they stand; rounded, because 52.3 - 50 is not quite 2.3."""
    return Estimate(round(float(np.sum(values)), 9), 0.0, np.inf)


def of_trainings(terms: Sequence[Term]) -> Estimate:
    """The weighted sum of cells.

    Of several trainings it is Student's over the seeds' sums. Of one it is over episodes: paired
    where cells have the same draw, else as of independent samples, with Welch's degrees of
    freedom. Cells with the same draw are cut to the first episodes that all of them have.
    """
    terms = _cut(terms)
    if len(terms[0][1]) > 1:
        sums = sum(weight * np.array([s.mean() for s in scores]) for weight, scores, _ in terms)
        return student(np.asarray(sums))
    drawn: dict[str, np.ndarray] = {}
    for weight, (scores,), draw in terms:
        drawn[draw] = drawn.get(draw, 0) + weight * scores
    parts = [student(values) for values in drawn.values()]
    if len(parts) == 1:
        return parts[0]
    variances = np.array([part.error**2 for part in parts])
    total = float(variances.sum())
    shares = variances**2 / np.array([part.degrees for part in parts])
    degrees = total**2 / float(shares.sum()) if total > 0 else np.inf
    return Estimate(sum(part.value for part in parts), float(np.sqrt(total)), degrees)


def _cut(terms: Sequence[Term]) -> list[Term]:
    """Terms with the episodes that all of those with the same draw have: the first ones."""
    lengths: dict[str, list[int]] = {}
    for _, scores, draw in terms:
        lengths.setdefault(draw, []).extend(map(len, scores))
    return [
        (weight, [values[: min(lengths[draw])] for values in scores], draw)
        for weight, scores, draw in terms
    ]


def holm(values: Sequence[float]) -> list[float]:
    """p-values adjusted for their number (Holm 1979), in the same order.

    The k-th smallest of n is multiplied by n - k + 1, and none is smaller than one before it.
    """
    adjusted, largest = [1.0] * len(values), 0.0
    for rank, place in enumerate(np.argsort(values, kind="stable")):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = largest
    return adjusted
