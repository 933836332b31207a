"""The published lists that say which class is in which split."""

from pathlib import Path
from typing import get_args

from epcore.data.sources import Sources
from epcore.plan.settings import Split


def read_lists(sources: Sources, source: str) -> dict[Split, Path]:
    """The list of each split, which keys the source's files: upstream train, val and test."""
    return {split: sources.path(source, split) for split in get_args(Split)}
