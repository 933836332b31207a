"""A data set of the user's own: class folders of images and their split.

    <path>/images/<class>/<file>
    <path>/split.csv           with the columns filename, label, split

`label` is the class folder; `split` is base, val or novel (train, val or test are understood).
Without split.csv the data set's `split` draws the classes from a seed.
"""

import csv
import io
import stat
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import numpy as np

from epcore.data.archives import LARGEST
from epcore.data.config import Split
from epcore.data.contents import Contents, ImageClass, in_label_order
from epcore.data.datasets import OwnData, RandomSplit
from epcore.data.pictures import decode_all
from epcore.data.sources import Sources
from epcore.errors import UserError
from epcore.files import sha256

SPLITS: dict[str, Split] = {
    "base": "base", "train": "base", "val": "val", "novel": "novel", "test": "novel",
}  # fmt: skip
ORDER = get_args(Split)
COLUMNS = ["filename", "label", "split"]
# What operating systems leave in folders, in lower case.
LEFT_BEHIND = frozenset(
    {".ds_store", "thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "__macosx"}
)
OTHER_MARKS = (";", "\t", "|")  # that spreadsheets put between columns


def read_split(path: Path) -> dict[ImageClass, list[str]]:
    """The file names of each class, classes and names sorted.

    Spaces around a cell are left out, and letters are in Unicode's composed form (NFC).

    Raises:
        UserError: for a missing file, column or entry, an unknown split, a class in two splits,
            an image listed twice, a name that leads elsewhere, or text that is not UTF-8 or no CSV.
    """
    if not path.is_file():
        raise UserError(
            f"{path} does not exist",
            "a data set of kind folder needs images/<class>/<file> and either a split.csv "
            "with the columns filename, label, split, or the key `split` with the numbers of "
            "classes and a seed",
        )
    try:
        text = path.read_text(encoding="utf-8-sig")  # Excel puts a mark before the first column
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text ({error})", "save it as UTF-8") from None
    files: dict[ImageClass, list[str]] = {}
    splits: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    rows = _rows(path, text)
    location, header = next(rows, (f"{path}, line 1", list[str]()))
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        odd = next((mark for mark in OTHER_MARKS if mark in header[0]), None) if header else None
        if odd is not None:
            raise UserError(f"{location}: columns are separated by {odd!r}", "save it with commas")
        raise UserError(f"{location}: the column {missing[0]!r} is missing", "add it")
    for location, cells in rows:
        row = dict(zip(header, cells, strict=False))
        empty = [column for column in COLUMNS if not row.get(column)]
        if empty:
            raise UserError(f"{location}: {empty[0]} is empty", "fill it in or remove the line")
        name, label, split = (row[column] for column in COLUMNS)
        _check_name(location, "filename", name)
        _check_name(location, "label", label)
        if split not in SPLITS:
            raise UserError(f"{location}: unknown split {split!r}", "use base, val or novel")
        if splits.setdefault(label, SPLITS[split]) != SPLITS[split]:
            raise UserError(
                f"{location}: class {label!r} is in {splits[label]} and in {SPLITS[split]}",
                "base, val and novel must not share a class",
            )
        if (label, name) in seen:  # it could be support and query of one episode
            raise UserError(
                f"{location}: {label}/{name} is listed twice", "remove one of the lines"
            )
        seen.add((label, name))
        files.setdefault(ImageClass(label, SPLITS[split]), []).append(name)
    classes = sorted(files, key=lambda c: (ORDER.index(c.split), c.name))
    return {c: sorted(files[c]) for c in classes}


def _rows(path: Path, text: str) -> Iterator[tuple[str, list[str]]]:
    """The line that each row begins in, and its cells; empty lines are left out."""
    reader = csv.reader(io.StringIO(text), strict=True)
    while True:
        location = f"{path}, line {reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(f"{location}: this is no CSV ({error})", "correct its quotes") from None
        if cells:
            yield location, [_normal(cell) for cell in cells]


def _normal(name: str) -> str:
    """The name without spaces around it, its letters composed (macOS takes them apart)."""
    return unicodedata.normalize("NFC", name.strip(" "))


def _check_name(location: str, what: str, name: str) -> None:
    """Raises `UserError` unless a name is that of a file or folder and can be printed."""
    odd = any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name)
    if odd or "/" in name or name in (".", ".."):
        raise UserError(
            f"{location}: the {what} {name!r} is no name of a file or folder in images/",
            "a name has no '/', no control characters, and is UTF-8: mend or rename it",
        )


def draw_split(names: list[str], split: RandomSplit, location: str) -> list[ImageClass]:
    """Classes by split, then name; which is in which is drawn from the seed.

    Raises:
        UserError: if there are more or fewer classes than the split asks for.
    """
    wanted: dict[Split, int] = {"base": split.base, "val": split.val, "novel": split.novel}
    if sum(wanted.values()) != len(names):
        raise UserError(
            f"{location} has {len(names)} classes, the data set's `split` asks for "
            f"{split.base} + {split.val} + {split.novel}",
            f"make the sum {len(names)}",
        )
    shuffled = list(np.random.default_rng(split.seed).permutation(sorted(names)))
    classes = []
    for name, count in wanted.items():
        classes += [ImageClass(str(chosen), name) for chosen in sorted(shuffled[:count])]
        del shuffled[:count]
    return classes


def contents(dataset: OwnData, sources: Sources) -> Contents:
    """Classes by split, then name; images by name."""
    folder = Path(dataset.path)
    origin = {"pixels": str(dataset.pixels)}
    if dataset.split is None:
        files = read_split(folder / "split.csv")
        origin["split_sha256"] = sha256(folder / "split.csv")
        paths = _listed_paths(folder / "images", files)
    else:
        files = _drawn(folder, dataset.split)
        paths = [folder / "images" / c.name / name for c, names in files.items() for name in names]
    _check_files(paths)

    def encoded() -> Iterator[tuple[int, str, bytes]]:
        for row, path in enumerate(paths):
            yield row, str(path), path.read_bytes()

    return Contents(
        classes=list(files),
        labels=in_label_order([len(names) for names in files.values()]),
        images=decode_all(encoded(), dataset.image_size, dataset.pixels, upright=True),
        image_size=dataset.image_size,
        origin=origin,
        name_of=lambda row: str(paths[row]),
    )


def _listed_paths(images: Path, files: dict[ImageClass, list[str]]) -> list[Path]:
    """The files that split.csv names; names are compared in Unicode's normal form."""
    folders = _by_normal_name(images)
    paths = []
    for image_class, names in files.items():
        folder = _path_of(images, folders, image_class.name)
        pictures = _by_normal_name(folder)
        paths += [_path_of(folder, pictures, name) for name in names]
    return paths


def _by_normal_name(folder: Path) -> dict[str, list[str]]:
    """What is in a folder, none if there is no such folder: normal name -> names."""
    names: dict[str, list[str]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        names.setdefault(_normal(path.name), []).append(path.name)
    return names


def _path_of(folder: Path, names: dict[str, list[str]], name: str) -> Path:
    """The path of a file in a folder by its normalized name; an unknown name stays as it is.

    Raises:
        UserError: if two files or folders have that name.
    """
    alike = names.get(name, [name])
    if len(alike) > 1:
        raise UserError(
            f"{folder}: {alike[0]!r} and {alike[1]!r} are one name but for spaces around it "
            "or the Unicode form of its letters",
            "rename one of the two",
        )
    return folder / alike[0]


def _check_files(paths: list[Path]) -> None:
    """Each is a plain file of its own: a link to another one could be support and query at once.

    Raises:
        UserError: for the first that is not.
    """
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:
            raise UserError(f"{path} does not exist, but split.csv lists it") from None
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise UserError(
                f"{path} is no plain file of up to {LARGEST:,} bytes", "replace it by a picture"
            )
        first_path = seen.setdefault((status.st_dev, status.st_ino), path)
        if first_path is not path:
            raise UserError(
                f"{path} and {first_path} are one file, linked", "remove one of the two"
            )


def _drawn(folder: Path, split: RandomSplit) -> dict[ImageClass, list[str]]:
    if (folder / "split.csv").exists():
        raise UserError(
            f"{folder / 'split.csv'} exists, and the data set has the key `split` as well",
            "remove one of the two",
        )
    images = folder / "images"
    files = class_folders(images)
    return {c: files[c.name] for c in draw_split(list(files), split, str(images))}


def class_folders(images: Path) -> dict[str, list[str]]:
    """The names of the class folders, each with its files, sorted.

    Hidden ones are left out. So is what operating systems leave behind, which is counted on stderr.

    Raises:
        UserError: if there is no such folder, or something else in it.
    """
    if not images.is_dir():
        raise UserError(f"{images} does not exist", "put a folder for each class there")
    stray = "is no class folder", "put pictures into one, remove all else"
    foreign = "is no picture", "a class folder holds its pictures and nothing else: remove it"
    names = _visible(images, Path.is_dir, stray)
    if not names:
        raise UserError(f"{images} is empty", "put a folder for each class there")
    classes = {name: _visible(images / name, Path.is_file, foreign) for name in names}
    folders = [images, *(images / name for name in names)]
    skipped = sum(_is_left_behind(path) for folder in folders for path in folder.iterdir())
    if skipped:
        print(
            f"{images}: skipped {skipped} that operating systems leave behind, such as Thumbs.db",
            file=sys.stderr,
        )
    return classes


def _is_left_behind(path: Path) -> bool:
    return path.name.lower() in LEFT_BEHIND


def _visible(folder: Path, right: Callable[[Path], bool], problem: tuple[str, str]) -> list[str]:
    """The names in a folder, sorted, without hidden ones and what operating systems leave behind.

    Raises:
        UserError: for one of another kind.
    """
    paths = sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".") and not _is_left_behind(path)
    )
    for path in paths:
        _check_name(str(folder), "name", path.name)
        if not right(path):
            if path.is_dir():  # perhaps a class folder, with all of the user's pictures
                problem = (
                    "is a folder, where pictures of a class were expected",
                    f"give the folder that holds the class folders (is it {folder}?), or move the "
                    "pictures up",
                )
            raise UserError(f"{path} {problem[0]}", problem[1])
    return [path.name for path in paths]
