"""The CSV of tables, whose cells stay text, so that 48.70 is not turned into 48.7."""

import csv
from pathlib import Path

from epcore.files import reading

KEY = ("block", "row", "column")
COLUMNS = (
    *("table", *KEY, "accuracy", "interval", "episodes", "seeds", "parameters"),
    *("baseline", "difference", "difference_interval", "accuracies", "differences"),
    *("pretraining_fell", "pretraining_epochs", "finetuning_fell", "finetuning_epochs"),
    *("training_seconds", "training_kwh"),
    *("assumes", "chosen", "validation_accuracies"),
    *("paper_accuracy", "paper_interval", "paper_parameters", "note"),
    *("rerun_accuracy", "rerun_interval", "source"),
)
# One more column where a table has `seconds`.
SECONDS = "seconds_per_1000_episodes"
Cell = dict[str, str]


def read_cells(path: Path) -> dict[tuple[str, str, str], Cell]:
    """The lines of a table by block, row and column; empty cells are empty texts.

    Raises:
        UserError: if it is missing, no CSV or lacks a column or a cell.
    """
    with reading(f"table {path} cannot be read", "delete it"):
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or [])]
            if missing:
                raise ValueError(f"the column {missing[0]!r} is missing")
            lines = list(reader)
        if any(None in line or None in line.values() for line in lines):
            raise ValueError("a line has too few or too many cells")
    return {(line["block"], line["row"], line["column"]): line for line in lines}
