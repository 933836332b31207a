"""A data set of the user's own: class folders of images and their split.

    <path>/images/<class>/<file>
    <path>/split.csv           with the columns filename, label, split

`label` is the class folder; `split` is base, val or novel (train, val or test are understood).
Without split.csv the data set's `split` draws the classes from a seed.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd

from epcore.data.config import Split
from epcore.data.contents import Contents, ImageClass
from epcore.data.datasets import OwnData, RandomSplit
from epcore.data.pictures import decode_all
from epcore.data.sources import Sources
from epcore.errors import UserError
from epcore.files import sha256

SPLITS: dict[str, Split] = {
    "base": "base", "train": "base", "val": "val", "novel": "novel", "test": "novel",
}  # fmt: skip
COLUMNS = ["filename", "label", "split"]
# What operating systems leave in folders, in lower case; hidden files are left out as well.
LEFT_BEHIND = ("thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "__macosx")


def contents(dataset: OwnData, sources: Sources) -> Contents:
    """Classes by split, then name; images by name."""
    folder, split_file = Path(dataset.path), Path(dataset.path) / "split.csv"
    if dataset.split is None:
        files = {
            image_class: [_listed_path(folder / "images", image_class.name, name) for name in names]
            for image_class, names in read_split(split_file).items()
        }
    elif split_file.exists():
        raise UserError(
            f"{split_file} exists, and the data set has the key `split` as well",
            "remove one of the two",
        )
    else:
        folders = class_folders(folder / "images")
        classes = draw_split(list(folders), dataset.split, str(folder / "images"))
        files = {image_class: folders[image_class.name] for image_class in classes}
    paths = [path for of_class in files.values() for path in of_class]

    encoded = ((row, str(path), path.read_bytes()) for row, path in enumerate(paths))
    return Contents(
        classes=list(files),
        counts=[len(of_class) for of_class in files.values()],
        images=decode_all(encoded, dataset.image_size, dataset.pixels, upright=True),
        facts={} if dataset.split else {"split_sha256": sha256(split_file)},
        name_of=lambda row: str(paths[row]),
    )


def by_split(classes: Iterable[ImageClass]) -> list[ImageClass]:
    """The classes by split, then name."""
    return sorted(classes, key=lambda c: (get_args(Split).index(c.split), c.name))


# -- a split that a file lists ---------------------------------------------------------------------


def read_split(path: Path) -> dict[ImageClass, list[str]]:
    """The file names of each class, classes and names sorted.

    Spaces around a cell are left out, and letters are in Unicode's composed form (NFC).

    Raises:
        UserError: for a missing file, column or entry, an unknown split, an image listed twice, a
            name that leads elsewhere, or text that is not UTF-8 or no CSV.
    """
    table = _table(path)

    def refuse(wrong: "pd.Series[bool]", problem: str, remedy: str) -> None:
        """Tells of the first wrong line, if there is one."""
        if wrong.any():
            line = table[wrong].iloc[0]
            raise UserError(f"{path}, line {line.name + 2}: {problem.format(**line)}", remedy)

    for column in ("filename", "label"):
        elsewhere = table[column].str.contains(r"/|^\.{0,2}$")
        refuse(elsewhere, f"the {column} {{{column}!r}} is no name in images/", "mend it")
    refuse(~table["split"].isin(list(SPLITS)), "unknown split {split!r}", "use base, val or novel")
    refuse(  # one image could be support and query of an episode
        table.duplicated(["label", "filename"]),
        "{label}/{filename} is listed twice",
        "remove one of the lines",
    )
    files: dict[ImageClass, list[str]] = defaultdict(list)
    for name, label, split in table[COLUMNS].itertuples(index=False):
        files[ImageClass(label, SPLITS[split])].append(name)
    return {image_class: sorted(files[image_class]) for image_class in by_split(files)}


def _table(path: Path) -> pd.DataFrame:
    """The cells of split.csv as text, empty where there is none; without empty lines."""
    if not path.is_file():
        raise UserError(
            f"{path} does not exist",
            "a data set of kind folder needs images/<class>/<file> and either a split.csv "
            "with the columns filename, label, split, or the key `split` with the numbers of "
            "classes and a seed",
        )
    try:
        table = pd.read_csv(
            path,
            dtype=str,
            encoding="utf-8-sig",  # Excel puts a mark before the first column
            usecols=lambda column: _normal(column) in COLUMNS,
            index_col=False,  # spreadsheets end each line with a comma where a column was emptied
            keep_default_na=False,
            skip_blank_lines=False,
        )
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} cannot be read ({reason})", "save it as CSV in UTF-8") from None
    table = table.map(_normal).rename(columns=_normal)
    missing = [column for column in COLUMNS if column not in table]
    if missing:
        raise UserError(
            f"{path}: the column {missing[0]!r} is missing",
            f"its first line must be {','.join(COLUMNS)}, with commas between the columns",
        )
    return table[(table != "").any(axis=1)]


def _normal(name: str) -> str:
    """The name without spaces around it, its letters composed (macOS takes them apart)."""
    return unicodedata.normalize("NFC", name.strip(" "))


def _listed_path(images: Path, label: str, name: str) -> Path:
    """The file of a line of split.csv.

    Raises:
        UserError: if it is no plain file.
    """
    path = _path_of(_path_of(images, label), name)
    if not path.exists():
        raise UserError(f"{path} does not exist, but split.csv lists it")
    if not path.is_file():
        raise UserError(f"{path} is no plain file", "replace it by a picture")
    return path


def _path_of(folder: Path, name: str) -> Path:
    """The path of a name in a folder, or of the entry that has this name in its normal form."""
    path = folder / name
    if path.exists() or not folder.is_dir():
        return path
    return next((entry for entry in folder.iterdir() if _normal(entry.name) == name), path)


# -- a split that is drawn -------------------------------------------------------------------------


def draw_split(names: list[str], split: RandomSplit, location: str) -> list[ImageClass]:
    """Classes by split, then name; which is in which is drawn from the seed.

    Raises:
        UserError: if there are more or fewer classes than the split asks for.
    """
    counts: dict[Split, int] = {"base": split.base, "val": split.val, "novel": split.novel}
    splits = [name for name, count in counts.items() for _ in range(count)]
    if len(splits) != len(names):
        raise UserError(
            f"{location} has {len(names)} classes, the data set's `split` asks for "
            f"{split.base} + {split.val} + {split.novel}",
            f"make the sum {len(names)}",
        )
    shuffled = np.random.default_rng(split.seed).permutation(sorted(names)).tolist()
    return by_split(map(ImageClass, shuffled, splits))


def class_folders(images: Path) -> dict[str, list[Path]]:
    """The names of the class folders, each with its files, sorted.

    Hidden ones are left out, and so is what operating systems leave behind, such as Thumbs.db.

    Raises:
        UserError: if there is no such folder, or something else in it.
    """
    folders = _visible(images) if images.is_dir() else []
    if not folders:
        problem = "is empty" if images.is_dir() else "does not exist"
        raise UserError(f"{images} {problem}", "put a folder for each class there")
    for folder in folders:
        if not folder.is_dir():
            raise UserError(
                f"{folder} is no class folder", "put pictures into one, remove all else"
            )
    return {folder.name: pictures_in(folder) for folder in folders}


def pictures_in(folder: Path) -> list[Path]:
    """The files of a folder, sorted, without hidden ones and what operating systems leave behind.

    Raises:
        UserError: if there is something else in it.
    """
    paths = _visible(folder)
    for path in paths:
        if not path.is_file():  # perhaps a class folder, with all of the user's pictures
            raise UserError(
                f"{path} is no picture",
                f"{folder} should have pictures and nothing else, if it is not the folder that "
                "holds the class folders",
            )
    return paths


def _visible(folder: Path) -> list[Path]:
    """What is in a folder, sorted, without hidden files and what operating systems leave behind."""
    paths = [
        path
        for path in sorted(folder.iterdir())
        if not path.name.startswith(".") and path.name.lower() not in LEFT_BEHIND
    ]
    for path in paths:
        try:
            path.name.encode()
        except UnicodeEncodeError:
            raise UserError(f"{folder}: the name {path.name!r} is not UTF-8", "rename it") from None
    return paths
