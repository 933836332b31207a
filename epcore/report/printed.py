"""The numbers that others print: a file of config/paper, one line a cell."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from epcore.errors import UserError

COLUMNS = ("block", "row", "column", "accuracy", "interval", "note")
Place = tuple[str, str, str]
PrintedCell = dict[str, str]


def read_printed(path: Path) -> dict[Place, PrintedCell]:
    """The lines by block, row and column; numbers stay text, so that 48.70 is not turned into 48.7.

    Raises:
        UserError: naming the first line that is there twice or holds no percentage.
    """
    cells: dict[Place, PrintedCell] = {}
    for location, cell in _lines(path):
        place = (cell["block"], cell["row"], cell["column"])
        if place in cells:
            raise UserError(
                f"{location}: {', '.join(place)} is there twice", "delete one of the lines"
            )
        _check_percentage(cell["accuracy"], f"{location}, accuracy")
        if cell["interval"]:
            _check_percentage(cell["interval"], f"{location}, interval")
        cells[place] = cell
    return cells


def _lines(path: Path) -> Iterator[tuple[str, PrintedCell]]:
    """Every line below the first, and where it stands."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            header = reader.fieldnames or []
            for name in COLUMNS:
                if name not in header:
                    problem = f"the column {name!r} is missing; write {','.join(COLUMNS)}"
                    raise UserError(f"{path}, line 1: {problem}")
            for line in reader:
                location = f"{path}, line {reader.line_num}"
                if None in line or None in line.values():
                    raise UserError(
                        f"{location}: expected {len(header)} cells, {','.join(header)}",
                        'a text with a comma stands in "..."',
                    )
                yield location, line
    except (ValueError, csv.Error, OSError) as error:
        problem = f"cannot be read ({error}); it must be UTF-8 text with commas between the cells"
        raise UserError(f"{path} {problem}") from None


def _check_percentage(text: str, location: str) -> None:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or float(text) > 100:
        raise UserError(f"{location}: expected a number from 0 to 100 such as 61.00, got {text!r}")
