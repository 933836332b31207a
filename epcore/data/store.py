"""The packed image store that every data set becomes.

A store is a folder of four files:

- `images.npy`: uint8 `(N, height, width, 3)`, RGB, memory-mapped when read;
- `labels.npy`: int64 `(N,)`, the class of each image, images of a class in one run;
- `checksums.npy`: uint32 `(N,)`, the CRC-32 of each image;
- `store.json`: data set name, the classes in label order with their split (`base`, `val` or
  `novel`) and, where there is one, their group (super-class), and where the pixels come from.
"""

import json
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from epcore.data.config import Split
from epcore.data.contents import Contents, ImageClass, check_classes
from epcore.data.datasets import SharedImages
from epcore.data.repeats import find_repeats
from epcore.errors import UserError
from epcore.files import atomic, reserve, sha256, write_text

SMALL = ("labels.npy", "checksums.npy")
FILES = ("images.npy", *SMALL, "store.json")
LISTED = "shared-images.csv"
REMEDY = "delete the folder and run the same command again to rebuild it"


@dataclass(frozen=True)
class ImageStore:
    """An opened store; see the module's docstring for the arrays.

    Pixels are read through `pixels`, which verifies each image when it is first read, noted in
    `verified` `(N,)`: hashing all of them at every start would take minutes for large data.
    """

    directory: Path
    images: np.ndarray
    labels: np.ndarray
    checksums: np.ndarray
    classes: tuple[ImageClass, ...]
    verified: np.ndarray

    def pixels(self, rows: np.ndarray) -> np.ndarray:
        """Images uint8 `(n, height, width, 3)` of store rows `(n,)`.

        Raises:
            UserError: if one is not the image that was packed.
        """
        images: np.ndarray = self.images[rows]
        for position in np.flatnonzero(~self.verified[rows]):
            if zlib.crc32(images[position]) != self.checksums[rows[position]]:
                raise UserError(
                    f"data set {self.directory} is damaged: image {rows[position]} of "
                    "images.npy has another checksum",
                    REMEDY,
                )
        self.verified[rows] = True
        return images

    @property
    def name(self) -> str:
        return self.directory.name

    def class_indices(self, *splits: Split) -> list[int]:
        """Labels of the splits' classes, ascending."""
        return [label for label, c in enumerate(self.classes) if c.split in splits]

    def image_indices(self, *splits: Split) -> np.ndarray:
        """Row numbers `(n,)` of the splits' images, ascending."""
        return np.flatnonzero(np.isin(self.labels, self.class_indices(*splits)))

    @classmethod
    def open(cls, directory: Path) -> "ImageStore":
        """Opens a store, checking that its files are whole and agree with each other.

        Raises:
            UserError: if a file is missing, damaged or of another store.
        """
        for name in FILES:
            if not (directory / name).is_file():
                raise UserError(f"data set {directory} has no {name}", REMEDY)
        try:
            facts = json.loads((directory / "store.json").read_text(encoding="utf-8"))
            labels = np.load(directory / "labels.npy", allow_pickle=False)
            checksums = np.load(directory / "checksums.npy", allow_pickle=False)
            images = np.load(directory / "images.npy", mmap_mode="r", allow_pickle=False)
            classes = tuple(ImageClass(**c) for c in facts["classes"])
            expected = facts["sha256"], tuple(facts["shape"]), np.uint8, facts["bytes"]
        except Exception as error:  # json, numpy and the names of keys each raise their own
            raise UserError(f"data set {directory} is damaged ({error})", REMEDY) from None
        size = (directory / "images.npy").stat().st_size
        digests = {name: sha256(directory / name) for name in SMALL}
        if (digests, images.shape, images.dtype, size) != expected:
            raise UserError(
                f"data set {directory} is damaged (images.npy, labels.npy or checksums.npy is "
                "not the one that store.json describes)",
                REMEDY,
            )
        verified = np.zeros(len(labels), dtype=bool)
        return cls(directory, images, labels, checksums, classes, verified)


def write_store(
    directory: Path,
    contents: Contents,
    image_size: int,
    shared_images: SharedImages = "refuse",
) -> None:
    """Writes a store, image by image, in constant memory but for 4 bytes an image.

    Args:
        directory: the store's folder; its name is the data set's name.
        contents: what to pack.
        image_size: height and width in pixels.
        shared_images: what becomes of an image that two splits share; whatever it is, they are
            all listed in `LISTED` beside the store.

    Raises:
        UserError: if a class is in two splits, has no image, or a split is empty; if images are
            missing or left over; if two splits share one, and that is refused or leaves a class
            without any.
    """
    name, rows = directory.name, len(contents.labels)
    check_classes(name, contents)
    directory.mkdir(parents=True, exist_ok=True)
    for leftover in directory.glob(".*.tmp*"):  # of a build that was killed
        leftover.unlink()
    shape = (rows, image_size, image_size, 3)
    with atomic(directory / "images.npy") as temporary:
        packed = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.uint8, shape=shape)
        reserve(temporary)
        written = np.zeros(rows, dtype=bool)
        checksums = np.zeros(rows, dtype=np.uint32)
        for row, image in tqdm(contents.images, f"pack {name}", rows, unit="image", disable=None):
            if row >= rows or written[row]:
                raise UserError(f"data set {name}: more images than the {rows} labels")
            packed[row], written[row] = image, True
            checksums[row] = zlib.crc32(packed[row])
        packed.flush()
        if not written.all():
            raise UserError(f"data set {name}: {written.sum()} images for {rows} labels")
        repeated, pairs_file = find_repeats(contents, packed, checksums), directory / LISTED
        del packed
        repeated.report(name, pairs_file, shared_images)
        labels = contents.labels
        if shared_images == "leave-out" and repeated.shared:
            rows_left = np.delete(np.arange(rows), [row for row, _ in repeated.shared])
            labels, checksums = labels[rows_left], checksums[rows_left]
            counts = np.bincount(labels, minlength=len(contents.classes)).tolist()
            check_classes(name, replace(contents, counts=counts))
            _keep(temporary, rows_left)
        # An old description must not vouch for new pixels, should the next lines never run.
        (directory / "store.json").unlink(missing_ok=True)
    with atomic(directory / "labels.npy") as temporary:
        np.save(temporary, labels.astype(np.int64))
    with atomic(directory / "checksums.npy") as temporary:
        np.save(temporary, checksums)
    facts = {
        "name": name,
        "classes": [asdict(c) for c in contents.classes],
        "shape": (len(labels), *shape[1:]),
        "bytes": (directory / "images.npy").stat().st_size,
        "sha256": {file: sha256(directory / file) for file in SMALL},
        "repeated_images": repeated.facts(shared_images),
        "provenance": contents.facts,
    }
    write_text(directory / "store.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


def _keep(path: Path, rows: np.ndarray) -> None:
    """Leaves the images of some rows, ascending, in a file of images; one at a time in memory."""
    images = np.load(path, mmap_mode="r")
    with atomic(path) as temporary:
        shape = (len(rows), *images.shape[1:])
        packed = np.lib.format.open_memmap(temporary, mode="w+", dtype=images.dtype, shape=shape)
        reserve(temporary)
        for place, row in enumerate(rows):
            packed[place] = images[row]
        packed.flush()
        del packed
