"""The published lists that say which class is in which split."""

import csv
import json
from pathlib import Path
from typing import Any, get_args

from epcore.data.config import Split
from epcore.data.sources import Sources
from epcore.errors import UserError


def read_lists(sources: Sources, source: str) -> dict[Split, Path]:
    """The list of each split, which keys the source's files: upstream train, val and test."""
    return {split: sources.path(source, split) for split in get_args(Split)}


def read_rows(path: Path, columns: int) -> list[list[str]]:
    """The rows of a CSV file that has no header and this number of columns.

    Raises:
        UserError: for a row of another length.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    for number, row in enumerate(rows, start=1):
        if len(row) != columns:
            raise UserError(f"{path}, line {number}: {columns} columns are expected")
    return rows


def read_json(path: Path) -> Any:
    """Raises `UserError` if the file is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is no JSON ({error})", "get it again") from None
