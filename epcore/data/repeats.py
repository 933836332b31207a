"""Images that a data set holds twice: finds, lists and reports them."""

import csv
import hashlib
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np

from epcore.data.config import Split
from epcore.data.contents import Contents
from epcore.data.datasets import SharedImages
from epcore.errors import UserError
from epcore.files import atomic

EXAMPLES = 3
COLUMNS = ["image", "class", "split", "equals", "equals_class", "equals_split"]


@dataclass(frozen=True)
class Repeated:
    """The images of a data set that are there twice.

    Attributes:
        contents: the data set.
        shared: the row of an image of base or val, and that of one that equals it, in the last
            split that has one; ascending. Without the first rows no two splits share an image.
        counts: how many images have another one in their class that equals them; how many have
            one in another class of their split, and none later in their own; how many are shared.
    """

    contents: Contents
    shared: list[tuple[int, int]]
    counts: dict[str, int]

    def report(self, name: str, path: Path, treatment: SharedImages) -> None:
        """Writes all images that splits share to `path`, and prints what happens to them.

        Raises:
            UserError: if they are refused.
        """
        path.unlink(missing_ok=True)
        if self.shared:
            lines = [self._described(row) + self._described(equal) for row, equal in self.shared]
            with atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([COLUMNS, *lines])
        examples = "; ".join(map(" is also ".join, self._names()[:EXAMPLES]))
        if self.shared and treatment == "refuse":
            raise UserError(
                f"data set {name}: {len(self.shared)} images of base or val are in a later split "
                f"too, pixel by pixel, such as: {examples}",
                f"{path} lists all pairs: remove the first of each, or set `shared_images: "
                "leave-out` for the data set to be built without those",
            )
        for key, number in self.counts.items():
            if number:
                location = key.replace("_", " ")
                print(f"data set {name}: images that are there twice, {location}: {number}")
        if self.shared:
            left_out = " and ".join(f"{n} of {split}" for split, n in self._by_split().items() if n)
            happens = {
                "keep": f"kept as published, such as: {examples}",
                "leave-out": f"left out, because a later split has them: {left_out}",
            }
            print(f"data set {name}: {happens[treatment]}; {path} lists all pairs")

    def facts(self, treatment: SharedImages) -> dict[str, Any]:
        """The facts on repeated images in `store.json`."""
        by_split = self._by_split()
        left_out = by_split if treatment == "leave-out" else dict.fromkeys(by_split, 0)
        return self.counts | {"left_out": left_out, "shared": self._names()}

    def _by_split(self) -> dict[str, int]:
        """How many images of base and of val a later split has too."""
        splits = [self.contents.class_of(row).split for row, _ in self.shared]
        return {split: splits.count(split) for split in ("base", "val")}

    def _names(self) -> list[list[str]]:
        """What people call the images of each pair."""
        return [[self.contents.called(row) for row in pair] for pair in self.shared]

    def _described(self, row: int) -> list[str]:
        image_class = self.contents.class_of(row)
        return [self.contents.called(row), image_class.name, image_class.split]


def find_repeats(contents: Contents, images: np.ndarray, checksums: np.ndarray) -> Repeated:
    """The repeated images of a data set.

    Args:
        contents: the data set.
        images: uint8 `(N, size, size, 3)`.
        checksums: `(N,)`, equal for equal images; others that have one in common are told apart.
    """
    values, numbers = np.unique(checksums, return_counts=True)
    rows_by_digest: dict[bytes, list[int]] = defaultdict(list)
    for row in np.flatnonzero(np.isin(checksums, values[numbers > 1])).tolist():
        rows_by_digest[hashlib.sha256(images[row]).digest()].append(row)
    counts = {"in_one_class": 0, "in_two_classes_of_a_split": 0, "in_two_splits": 0}
    shared = []
    for rows in rows_by_digest.values():
        rows.sort(key=lambda row: get_args(Split).index(contents.class_of(row).split))
        classes = [contents.class_of(row) for row in rows]
        for one, following in pairwise(classes):
            if one == following:
                counts["in_one_class"] += 1
            elif one.split == following.split:
                counts["in_two_classes_of_a_split"] += 1
        shared += [
            (row, rows[-1])
            for row, image_class in zip(rows, classes, strict=True)
            if image_class.split != classes[-1].split
        ]
    counts["in_two_splits"] = len(shared)
    return Repeated(contents, sorted(shared), counts)
