"""The packed image store that every data set becomes.

A store is a folder of three files:

- `images.npy`: uint8 `(N, height, width, 3)`, RGB, memory-mapped when read;
- `labels.npy`: int64 `(N,)`, the class of each image, images of a class in one run;
- `store.json`: data set name, the classes in label order with their split (`base`, `val` or
  `novel`) and, where there is one, their group (super-class), and where the pixels come from.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from epcore.data.contents import Contents, ImageClass, check_classes
from epcore.data.repeats import Repeats
from epcore.errors import UserError
from epcore.files import atomic, sha256, write_text
from epcore.plan.settings import Split

FILES = ("images.npy", "labels.npy", "store.json")


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


def write_store(directory: Path, contents: Contents) -> None:
    """Writes a store, image by image, in constant memory but for 16 bytes an image.

    Args:
        directory: the store's folder; its name is the data set's name.
        contents: what to pack.

    Raises:
        UserError: if a class is in two splits, has no image, or a split is empty; if images are
            missing or left over; if two splits of a data set that is not published share one.
    """
    name, rows = directory.name, len(contents.labels)
    check_classes(name, contents.classes, contents.labels)
    directory.mkdir(parents=True, exist_ok=True)
    for left in directory.glob(".*.tmp*"):  # of a build that was killed
        left.unlink()
    shape = (rows, contents.image_size, contents.image_size, 3)
    with atomic(directory / "images.npy") as temporary:
        packed = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.uint8, shape=shape)
        written, repeats = np.zeros(rows, dtype=bool), Repeats(contents)
        for row, image in tqdm(contents.images, f"pack {name}", rows, unit="image", disable=None):
            if row >= rows or written[row]:
                raise UserError(f"data set {name}: more images than the {rows} labels")
            packed[row], written[row] = image, True
            repeats.add(row, image)
        packed.flush()
        del packed
        if not written.all():
            raise UserError(f"data set {name}: {written.sum()} images for {rows} labels")
        repeated = repeats.report()
        _tell(name, repeated, contents.published)
        # An old description must not vouch for new pixels, should the next lines never run.
        (directory / "store.json").unlink(missing_ok=True)
    with atomic(directory / "labels.npy") as temporary:
        np.save(temporary, contents.labels.astype(np.int64))
    facts = {
        "name": name,
        "classes": [asdict(c) for c in contents.classes],
        "shape": shape,
        "bytes": (directory / "images.npy").stat().st_size,
        "sha256": {file: sha256(directory / file) for file in FILES[:2]},
        "repeated_images": repeated,
        "provenance": contents.origin,
    }
    write_text(directory / "store.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def _tell(name: str, repeated: dict[str, Any], published: bool) -> None:
    """Prints which images are there twice; in one's own data, no two splits may share one."""
    examples = "; ".join(" is also ".join(pair) for pair in repeated["examples"])
    if repeated["in_two_splits"] and not published:
        raise UserError(
            f"data set {name}: base, val and novel share {repeated['in_two_splits']} images, pixel "
            f"by pixel: {examples}; remove one of each pair"
        )
    counts = {key: count for key, count in repeated.items() if key != "examples" and count}
    for key, count in counts.items():
        print(f"data set {name}: images that are there twice, {key.replace('_', ' ')}: {count}")
    if examples:
        print(f"data set {name}: kept as published: {examples}")
