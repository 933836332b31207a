"""Images that a data set holds twice: finds, lists and reports them."""

import csv
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from epcore.data.config import Split
from epcore.data.contents import Contents
from epcore.data.datasets import SharedImages
from epcore.errors import UserError
from epcore.files import atomic

EXAMPLES = 3
COLUMNS = ("image", "class", "split", "equals", "equals_class", "equals_split")


@dataclass(frozen=True)
class Repeated:
    """The images of a data set that are there twice.

    Attributes:
        contents: the data set.
        shared: int64 `(n, 2)`: rows of an image of base or val and of one that equals it, in the
            last split that has one; the first column is ascending, no row is in it twice, and
            without its images no two splits share any.
        in_one_class: how many images have another one in their class that equals them.
        in_two_classes: the same in another class of their split, and none later in their own.
    """

    contents: Contents
    shared: np.ndarray
    in_one_class: int
    in_two_classes: int

    @property
    def counts(self) -> dict[str, int]:
        return {
            "in_one_class": self.in_one_class,
            "in_two_classes_of_a_split": self.in_two_classes,
            "in_two_splits": len(self.shared),
        }

    @property
    def shared_of(self) -> dict[str, int]:
        """How many images of base and of val a later split has too."""
        splits = [self.contents.class_of(row).split for row in self.shared[:, 0]]
        return {split: splits.count(split) for split in ("base", "val")}

    def pairs(self, rows: Iterable[np.ndarray]) -> list[list[str]]:
        """What people call the images of some rows of `shared`."""
        return [[self.contents.called(int(row)) for row in pair] for pair in rows]

    def list_shared(self, path: Path) -> None:
        """Writes all images that splits share, a pair a line; of none there is no file."""
        if not len(self.shared):
            path.unlink(missing_ok=True)
            return
        with atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(COLUMNS)
            for pair in self.shared:
                cells: list[str] = []
                for row in map(int, pair):
                    image_class = self.contents.class_of(row)
                    cells += [self.contents.called(row), image_class.name, image_class.split]
                lines.writerow(cells)

    def tell(self, name: str, listed: Path, treatment: SharedImages) -> None:
        """Prints how many images occur twice, and what happens to images that splits share.

        Raises:
            UserError: if they are refused.
        """
        examples = "; ".join(" is also ".join(pair) for pair in self.pairs(self.shared[:EXAMPLES]))
        count, where_listed = len(self.shared), f"{listed} lists all pairs"
        if count and treatment == "refuse":
            raise UserError(
                f"data set {name}: {count} images of base or val are in a later split too, "
                f"pixel by pixel, such as: {examples}",
                f"{where_listed}: remove the first of each, or set `shared_images: leave-out` "
                "for the data set to be built without those",
            )
        for key, number in self.counts.items():
            if number:
                location = key.replace("_", " ")
                print(f"data set {name}: images that are there twice, {location}: {number}")
        if count and treatment == "keep":
            print(f"data set {name}: kept as published, such as: {examples}; {where_listed}")
        elif count:
            left_out = " and ".join(f"{n} of {split}" for split, n in self.shared_of.items() if n)
            print(
                f"data set {name}: left out, because a later split has them: {left_out}; "
                f"{where_listed}"
            )

    def facts(self, treatment: SharedImages) -> dict[str, Any]:
        """The facts on repeated images in `store.json`."""
        excluded = self.shared_of if treatment == "leave-out" else dict.fromkeys(self.shared_of, 0)
        return self.counts | {"left_out": excluded, "shared": self.pairs(self.shared)}


class Repeats:
    """Remembers a digest of every image, 16 bytes each."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._digests = np.empty(len(contents.labels), dtype="S16")

    def add(self, row: int, image: np.ndarray) -> None:
        """Remembers the image `(size, size, 3)` of a row."""
        digest = hashlib.blake2b(image.tobytes(), digest_size=15).digest()
        # numpy drops zeros at the end of its byte strings.
        self._digests[row] = digest + b"."

    def result(self) -> Repeated:
        """The repeated images of all that were added.

        Within a split each image counts once with the next one that equals it.
        """
        labels, names = self._contents.labels, get_args(Split)
        ranks = np.array([names.index(c.split) for c in self._contents.classes])[labels]
        # Equal images stand together, those of the last split at their end, by row in each.
        order = np.lexsort((ranks, self._digests))
        equal = self._digests[order[1:]] == self._digests[order[:-1]]
        ends = np.flatnonzero(np.append(~equal, True))
        last = order[ends[np.searchsorted(ends, np.arange(len(order)))]]
        earlier = ranks[order] < ranks[last]
        shared = np.stack([order[earlier], last[earlier]], axis=1)
        in_split = equal & (ranks[order[1:]] == ranks[order[:-1]])
        in_class = in_split & (labels[order[1:]] == labels[order[:-1]])
        return Repeated(
            contents=self._contents,
            shared=shared[np.argsort(shared[:, 0])],
            in_one_class=int(in_class.sum()),
            in_two_classes=int((in_split & ~in_class).sum()),
        )
