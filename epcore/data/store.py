"""The packed image store that every data set becomes.

A store is a folder of three files:

- `images.npy`: uint8 `(N, height, width, 3)`, RGB, memory-mapped when read;
- `labels.npy`: int64 `(N,)`, the class of each image, images of a class in one run;
- `store.json`: data set name, the classes in label order with their split (`base`, `val` or
  `novel`) and, where there is one, their group (super-class), and where the pixels come from.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from epcore.errors import UserError
from epcore.files import atomic, sha256, write_text
from epcore.plan.models import Split

FILES = ("images.npy", "labels.npy", "store.json")


@dataclass(frozen=True)
class ImageClass:
    """One class of a data set. `group` is its super-class, or empty."""

    name: str
    split: Split
    group: str = ""


@dataclass(frozen=True)
class ImageStore:
    """An opened store; see the module's docstring for the arrays."""

    directory: Path
    images: np.ndarray
    labels: np.ndarray
    classes: tuple[ImageClass, ...]
    provenance: dict[str, Any]

    @property
    def name(self) -> str:
        return self.directory.name

    def class_indices(self, split: Split) -> list[int]:
        """Labels of the split's classes, ascending."""
        return [label for label, c in enumerate(self.classes) if c.split == split]

    def image_indices(self, split: Split) -> np.ndarray:
        """Row numbers `(n,)` of the split's images, ascending."""
        return np.flatnonzero(np.isin(self.labels, self.class_indices(split)))

    @classmethod
    def open(cls, directory: Path) -> "ImageStore":
        """Opens a store, checking that its files are whole and agree with each other.

        Raises:
            UserError: if a file is missing, truncated or of another store.
        """
        remedy = "delete the folder and run the same command again to rebuild it"
        for name in FILES:
            if not (directory / name).is_file():
                raise UserError(f"data set {directory} has no {name}; {remedy}")
        try:
            facts = json.loads((directory / "store.json").read_text(encoding="utf-8"))
            labels = np.load(directory / "labels.npy", allow_pickle=False)
            images = np.load(directory / "images.npy", mmap_mode="r", allow_pickle=False)
            classes = tuple(ImageClass(**c) for c in facts["classes"])
            expected = facts["sha256"]["labels.npy"], tuple(facts["shape"]), facts["bytes"]
            provenance = facts["provenance"]
        except (ValueError, EOFError, KeyError, TypeError, OSError) as error:
            raise UserError(f"data set {directory} is damaged ({error}); {remedy}") from None
        size = (directory / "images.npy").stat().st_size
        if (sha256(directory / "labels.npy"), images.shape, size) != expected:
            raise UserError(
                f"data set {directory} is damaged (images.npy or labels.npy is not the one that "
                f"store.json describes); {remedy}"
            )
        return cls(directory, images, labels, classes, provenance)


def write_store(
    directory: Path,
    classes: Iterable[ImageClass],
    labels: np.ndarray,
    images: Iterable[np.ndarray],
    image_size: int,
    provenance: dict[str, Any],
) -> None:
    """Writes a store, image by image, in constant memory.

    Args:
        directory: the store's folder; its name is the data set's name.
        classes: the classes in label order; names must be unique.
        labels: int64 `(N,)`.
        images: N arrays uint8 `(image_size, image_size, 3)` in the order of `labels`.
        image_size: height and width in pixels.
        provenance: where the pixels come from, kept in `store.json`.

    Raises:
        UserError: if a class is in two splits, has no image, or a split is empty.
    """
    classes = tuple(classes)
    check_classes(directory.name, classes, labels)
    directory.mkdir(parents=True, exist_ok=True)
    shape = (len(labels), image_size, image_size, 3)
    with atomic(directory / "images.npy") as temporary:
        packed = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.uint8, shape=shape)
        rows = 0
        for rows, image in enumerate(images, start=1):
            if rows > len(labels):
                break
            packed[rows - 1] = image
        packed.flush()
        del packed
        if rows != len(labels):
            raise UserError(f"data set {directory.name}: {rows} images for {len(labels)} labels")
        # An old description must not vouch for new pixels, should the next lines never run.
        (directory / "store.json").unlink(missing_ok=True)
    with atomic(directory / "labels.npy") as temporary:
        np.save(temporary, labels.astype(np.int64))
    facts = {
        "name": directory.name,
        "classes": [asdict(c) for c in classes],
        "shape": shape,
        "bytes": (directory / "images.npy").stat().st_size,
        "sha256": {name: sha256(directory / name) for name in FILES[:2]},
        "provenance": provenance,
    }
    write_text(directory / "store.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def check_classes(name: str, classes: tuple[ImageClass, ...], labels: np.ndarray) -> None:
    """Base, val and novel share no class, none is empty, and every class has an image."""
    shared = [c for c, count in Counter(c.name for c in classes).items() if count > 1]
    if shared:
        raise UserError(
            f"data set {name}: class {shared[0]!r} is listed twice or more; "
            "base, val and novel must be disjoint: keep each class in one split"
        )
    for split in get_args(Split):
        if not any(c.split == split for c in classes):
            raise UserError(f"data set {name}: no class in split {split!r}; give it some")
    counts = np.bincount(labels, minlength=len(classes))
    if len(counts) > len(classes):
        raise UserError(
            f"data set {name}: label {len(counts) - 1} has no class; "
            f"there are {len(classes)} classes, numbered from 0"
        )
    if counts.min() == 0:
        empty = classes[int(counts.argmin())].name
        raise UserError(f"data set {name}: class {empty!r} has no image; remove it or add some")
