"""The numbers that others print: a file of config/paper, one line a cell."""

import re
from pathlib import Path

from epcore.errors import UserError
from epcore.report.text_table import CsvLine, read_lines

COLUMNS = ("block", "row", "column", "accuracy", "interval", "note")
Place = tuple[str, str, str]


def read_printed(path: Path) -> dict[Place, CsvLine]:
    """The lines by block, row and column.

    Raises:
        UserError: if it cannot be read, or naming the first line that is there twice or holds no
            percentage.
    """
    cells: dict[Place, CsvLine] = {}
    for cell in read_lines(path, COLUMNS, "correct it"):
        place = (cell["block"], cell["row"], cell["column"])
        location = f"{path}: {', '.join(place)}"
        if place in cells:
            raise UserError(f"{location} is there twice", "delete one of the lines")
        for text in (cell["accuracy"], cell["interval"] or "0"):
            if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or float(text) > 100:
                raise UserError(
                    f"{location}: expected a number from 0 to 100 such as 61.00, got {text!r}"
                )
        cells[place] = cell
    return cells
