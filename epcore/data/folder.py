"""A data set of the user's own: class folders of images and a `split.csv`.

    <path>/images/<class>/<file>
    <path>/split.csv           with the columns filename, label, split

`label` is the class folder; `split` is base, val or novel (train, val or test are understood).
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from tqdm import tqdm

from epcore.data.store import ImageClass, write_store
from epcore.errors import UserError
from epcore.files import sha256
from epcore.plan.models import Split

SPLITS: dict[str, Split] = {
    "base": "base", "train": "base", "val": "val", "novel": "novel", "test": "novel",
}  # fmt: skip
COLUMNS = ["filename", "label", "split"]


def read_split(path: Path) -> dict[ImageClass, list[str]]:
    """The file names of each class, classes and names sorted.

    Raises:
        UserError: for a missing file, column or entry, an unknown split, a class in two splits,
            an image listed twice, or text that is not UTF-8.
    """
    if not path.is_file():
        raise UserError(
            f"{path} does not exist; a data set of kind folder needs images/<class>/<file> and "
            "a split.csv with the columns filename, label, split"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")  # Excel puts a mark before the first column
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from None
    files: dict[ImageClass, list[str]] = {}
    splits: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    reader = csv.DictReader(io.StringIO(text))
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or [])]
    if missing:
        raise UserError(f"{path}, line 1: the column {missing[0]!r} is missing; add it")
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        empty = [column for column in COLUMNS if not row[column]]
        if empty:
            raise UserError(f"{where}: {empty[0]} is empty; fill it in or remove the line")
        name, label, split = (row[column] for column in COLUMNS)
        if split not in SPLITS:
            raise UserError(f"{where}: unknown split {split!r}; use base, val or novel")
        if splits.setdefault(label, SPLITS[split]) != SPLITS[split]:
            raise UserError(
                f"{where}: class {label!r} is in {splits[label]} and in {SPLITS[split]}; "
                "base, val and novel must not share a class"
            )
        if (label, name) in seen:  # it could be support and query of one episode
            raise UserError(f"{where}: {label}/{name} is listed twice; remove one of the lines")
        seen.add((label, name))
        files.setdefault(ImageClass(label, SPLITS[split]), []).append(name)
    order = {"base": 0, "val": 1, "novel": 2}
    classes = sorted(files, key=lambda c: (order[c.split], c.name))
    return {c: sorted(files[c]) for c in classes}


def read_image(path: Path, size: int) -> np.ndarray:
    """RGB `(size, size, 3)`: the whole picture resized, bilinear, as the authors' Resize does.

    Raises:
        UserError: if the file is missing, no image, or of more than 8 bits a channel.
    """
    try:
        with Image.open(path) as image:
            if image.mode.startswith(("I", "F")):  # Pillow would cut values off at 255
                raise ValueError("its pixels have more than 8 bits a channel")
            upright = ImageOps.exif_transpose(image)  # phones note the turn, and leave the pixels
            picture = upright.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
            return np.asarray(picture)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist, but split.csv lists it") from None
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        OSError,
        SyntaxError,
        ValueError,
    ) as error:
        raise UserError(f"{path} cannot be read as an image ({error}); replace it") from None


def build(directory: Path, source: Path, image_size: int) -> None:
    """Packs the folder `source` into the store `directory`."""
    files = read_split(source / "split.csv")
    labels = np.repeat(np.arange(len(files)), [len(names) for names in files.values()])

    def images() -> Iterator[np.ndarray]:
        progress = tqdm(total=len(labels), desc=directory.name, unit="image", disable=None)
        with progress:
            for image_class, names in files.items():
                for name in names:
                    yield read_image(source / "images" / image_class.name / name, image_size)
                    progress.update()

    provenance = {
        "kind": "folder",
        "split_sha256": sha256(source / "split.csv"),
        "pixels": f"whole image resized to {image_size}x{image_size}, bilinear",
    }
    write_store(directory, files, labels, images(), image_size, provenance)
