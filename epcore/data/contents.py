"""What a builder finds in a data set's files, before it is packed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

import numpy as np

from epcore.data.config import Split
from epcore.errors import UserError


@dataclass(frozen=True)
class ImageClass:
    """One class of a data set. `group` is its super-class, or empty."""

    name: str
    split: Split
    group: str = ""

    def __post_init__(self) -> None:
        if self.split not in get_args(Split):
            raise ValueError(f"class {self.name!r} is of no split: {self.split!r}")


@dataclass(frozen=True)
class Contents:
    """A data set, its images still to come.

    Attributes:
        classes: in label order; names are unique.
        counts: how many images each class has; rows are in the order of the classes.
        images: pairs of row and uint8 `(size, size, 3)`; each row once, in any order.
        facts: where the pixels come from beside the data set's settings, kept in `store.json`.
        name_of: what people call the image of a row, if it has a name.
    """

    classes: Sequence[ImageClass]
    counts: Sequence[int]
    images: Iterable[tuple[int, np.ndarray]]
    facts: dict[str, Any] = field(default_factory=dict)
    name_of: Callable[[int], str] | None = None

    @cached_property
    def labels(self) -> np.ndarray:
        """int64 `(N,)`, ascending."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int64), self.counts)

    def class_of(self, row: int) -> ImageClass:
        return self.classes[int(self.labels[row])]

    def called(self, row: int) -> str:
        """The image of a row, for people."""
        if self.name_of is not None:
            return self.name_of(row)
        number = row - int(np.searchsorted(self.labels, self.labels[row])) + 1
        return f"image {number} of class {self.class_of(row).name!r}"


def check_classes(name: str, contents: Contents) -> None:
    """Base, val and novel share no class, none is empty, and every class has an image."""
    classes = contents.classes
    splits: dict[str, str] = {}
    for c in classes:
        if c.name in splits:
            raise UserError(
                f"data set {name}: class {c.name!r} is in {splits[c.name]} and in {c.split}",
                "base, val and novel must be disjoint: keep each class in one split",
            )
        splits[c.name] = c.split
    for split in get_args(Split):
        if not any(c.split == split for c in classes):
            raise UserError(f"data set {name}: no class in split {split!r}", "give it some")
    for image_class, count in zip(classes, contents.counts, strict=True):
        if not count:
            raise UserError(
                f"data set {name}: class {image_class.name!r} has no image", "remove it or add some"
            )


def check_groups(name: str, classes: Sequence[ImageClass]) -> None:
    """Base, val and novel share no super-class."""
    splits: dict[str, str] = {}
    for c in classes:
        if splits.setdefault(c.group, c.split) != c.split:
            raise UserError(
                f"data set {name}: the super-class {c.group!r} is in {splits[c.group]} and in "
                f"{c.split}",
                "the split's files are not the published ones",
            )
