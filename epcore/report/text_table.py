"""The two CSV files of a table: its cells, and the tests of this run behind them."""

import csv
from collections.abc import Iterable
from pathlib import Path

from epcore.files import user_error_on_failure

KEY = ("block", "row", "column")
# The run behind a cell of ours, but for its seed.
RUN = ("recipe", "backbone", "dataset", "protocol")
SECONDS = "seconds_per_1000_episodes"
CELLS = (
    *("table", *KEY, *RUN, "accuracy", "interval", "episodes", "seeds", "parameters"),
    *("baseline", "difference", "difference_interval"),
    *("training_seconds", "training_kwh", "assumes", SECONDS),
    *("paper_accuracy", "paper_interval", "paper_parameters", "note", "source"),
)
TESTS = (
    *(*KEY, *RUN, "seed", "accuracy", "interval", "episodes", "parameters"),
    *("difference", "difference_interval", "chosen", "validation_accuracy"),
    *("training_seconds", "training_kwh", "assumes", SECONDS),
    *("draw", "scores", "score_column", "sha256"),
)
CsvLine = dict[str, str]
Cells = dict[tuple[str, str, str], CsvLine]
Tests = dict[tuple[str, str, str], list[CsvLine]]


def by_seed(table: Path) -> Path:
    """The file of the tests behind a table's cells, which stands beside it."""
    return table.with_name(f"{table.stem}-by-seed.csv")


def read_cells(path: Path) -> Cells:
    """The cells of a table by block, row and column; what a cell lacks is an empty text.

    Raises:
        UserError: if it is missing, no CSV or lacks a column or a cell.
    """
    return {(line["block"], line["row"], line["column"]): line for line in read_lines(path, CELLS)}


def read_tests(path: Path) -> Tests:
    """The tests behind each cell of ours, a line for each seed; the file is that of `by_seed`.

    Raises:
        UserError: as `read_cells`.
    """
    tests: Tests = {}
    for line in read_lines(path, TESTS):
        tests.setdefault((line["block"], line["row"], line["column"]), []).append(line)
    return tests


def read_lines(path: Path, columns: Iterable[str], remedy: str = "delete it") -> list[CsvLine]:
    """The lines of a CSV file; numbers stay text, so that 48.70 is not turned into 48.7.

    Raises:
        UserError: if it is missing, no CSV or lacks a column or a cell.
    """
    lines: list[CsvLine] = []
    with (
        user_error_on_failure(f"table {path} cannot be read", remedy),
        path.open(newline="", encoding="utf-8") as file,
    ):
        reader = csv.DictReader(file, strict=True)
        for name in columns:
            if name not in (reader.fieldnames or []):
                raise ValueError(f"the column {name!r} is missing")
        for line in reader:
            if None in line or None in line.values():
                raise ValueError(f"line {reader.line_num} has too few or too many cells")
            lines.append(line)
    return lines
