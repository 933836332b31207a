"""What matters in a full factorial ablation: main effects and interactions of its factors."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from epcore.report.statistics import Estimate, over_trainings

Term = tuple[str, ...]
Cells = Mapping[frozenset[str], np.ndarray]


def terms(factors: Sequence[str]) -> list[Term]:
    """Each factor, then each pair of factors."""
    return [(factor,) for factor in factors] + list(itertools.combinations(factors, 2))


def contrast(cells: Cells, term: Term) -> np.ndarray:
    """The effect of a term in each episode `(n,)`, or in one number `()`.

    cells: for each of the 2^k sets of factors that are on, the accuracies of the same episodes.
    Of one factor: the mean with it less the mean without it. Of two: how much more the first
    gives with the second than without it.
    """
    total = np.zeros(())
    for on, accuracies in cells.items():
        sign = np.prod([1 if factor in on else -1 for factor in term])
        total = total + sign * np.asarray(accuracies)
    effect: np.ndarray = total * 2 ** len(term) / len(cells)
    return effect


def effects(trainings: Sequence[Cells], factors: Sequence[str]) -> dict[Term, Estimate]:
    """Every term's effect, of the cells of one training or several, with its 95 % interval.

    Cells share their episodes; `over_trainings` says what the interval is over.
    """
    return {
        term: over_trainings([contrast(cells, term) for cells in trainings])
        for term in terms(factors)
    }
