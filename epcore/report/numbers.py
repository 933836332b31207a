"""The numbers that a figure's claim rests on, and tables of what it draws, as CSV files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from epcore.files import atomic
from epcore.report.statistics import student


@dataclass(frozen=True)
class Number:
    """A named number; `what` says what it is. `low` and `high` are its 95 % interval, if any."""

    name: str
    value: float
    what: str
    low: float | None = None
    high: float | None = None


def mean_number(name: str, values: np.ndarray, what: str) -> Number:
    """The mean of independent observations `(n,)`, n >= 2, with Student's t interval."""
    mean = student(values)
    low, high = mean.value - mean.half_width, mean.value + mean.half_width
    return Number(name, mean.value, what, low, high)


def write_numbers(numbers: Sequence[Number], figure: Path) -> None:
    """Writes them into the CSV file of a figure."""
    table = pd.DataFrame([asdict(number) for number in numbers])
    columns = ["name", "value", "low", "high", "what"]
    write_table(table[columns], figure.with_suffix(".csv"))


def write_table(table: pd.DataFrame, path: Path, float_format: str = "%.6f") -> None:
    """Writes a CSV file, whole or not at all; `float_format` is that of its numbers."""
    with atomic(path) as temporary:
        table.to_csv(temporary, index=False, float_format=float_format, lineterminator="\n")
