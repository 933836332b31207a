"""Cells of the snapshots in docs/results, and Markdown tables of them."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from epcore.report.statistics import student

ROOT = Path(__file__).parents[2]
SNAPSHOTS = ROOT / "docs/results"
Line = dict[str, str]


def lines(path: Path) -> list[Line]:
    """The lines of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def lines_of(name: str) -> list[Line]:
    """The lines of docs/results/<name>.csv."""
    return lines(SNAPSHOTS / f"{name}.csv")


def cells_of(name: str, block: str | None = None) -> dict[tuple[str, str], Line]:
    """Row and column of a table -> its cell, of one block where there are several."""
    lines = (line for line in lines_of(name) if block in (None, line["block"]))
    return {(line["row"], line["column"]): line for line in lines}


def rows_of(cells: Iterable[tuple[str, str]]) -> list[str]:
    """The rows of cells, each once, in order."""
    return list(dict.fromkeys(row for row, _ in cells))


def markdown(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table with a line for its columns' names and one for each row."""
    first, *others = (f"| {' | '.join(line)} |" for line in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *map(unbroken, others)])


def unbroken(text: str) -> str:
    """Text whose numbers stay in a line with their intervals."""
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def short(number: str) -> str:
    """A number with one digit behind the point."""
    return f"{float(number):.1f}"


def accuracy(cell: Line) -> str:
    """An accuracy and its interval."""
    return f"{short(cell['accuracy'])} ± {short(cell['interval'])}"


def gap(cell: Line, digits: int = 1) -> str:
    """A difference and its interval; nothing for a row that others are compared with."""
    if not cell["difference"]:
        return ""
    difference, width = float(cell["difference"]), float(cell["difference_interval"])
    return f"{difference:+z.{digits}f} ± {width:.{digits}f}"


def mean_gap(differences: np.ndarray, digits: int = 1) -> str:
    """The mean of differences `(n,)` of n trainings, and its interval."""
    mean = student(differences)
    return f"{mean.value:+z.{digits}f} ± {mean.half_width:.{digits}f}"


def gap_by_seed(cell: Line, differences: Iterable[float]) -> str:
    """A mean difference, its interval over trainings, and that of each training."""
    return f"{gap(cell)} ({', '.join(f'{value:+z.1f}' for value in differences)})"
