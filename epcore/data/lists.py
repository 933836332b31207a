"""The published lists that say which class is in which split."""

import csv
from pathlib import Path
from typing import get_args

from epcore.data.config import Split
from epcore.data.sources import Sources


def read_lists(sources: Sources, source: str) -> dict[Split, Path]:
    """The list of each split, which keys the source's files: upstream train, val and test."""
    return {split: sources.path(source, split) for split in get_args(Split)}


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """The rows of a CSV file that has no header and two columns."""
    with path.open(encoding="utf-8", newline="") as file:
        return [(first, second) for first, second in csv.reader(file)]
