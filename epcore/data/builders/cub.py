"""CUB-200-2011 with the split of Chen et al. (2019, "A closer look at few-shot classification").

Class folders sorted by name and counted from 0: even ones are base, and of the odd ones every
other is val, the rest novel. The whole picture is used, not the bird's box.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import get_args

from epcore.data.archives import files_of_tar
from epcore.data.config import Split
from epcore.data.contents import Contents, ImageClass
from epcore.data.datasets import CubData
from epcore.data.pictures import decode_all
from epcore.data.sources import Sources

FOLDER = "CUB_200_2011/images/"


def split_of(position: int) -> Split:
    """The split of the class at a position in the sorted list of classes."""
    if position % 2 == 0:
        return "base"
    return "val" if position % 4 == 1 else "novel"


def _is_picture(name: str) -> bool:
    """Whether a member of the archive is one; hidden files are none, as in Chen et al.'s script."""
    return name.startswith(FOLDER) and not PurePosixPath(name).name.startswith(".")


def contents(dataset: CubData, sources: Sources) -> Contents:
    """Classes and images in the order of their names, within a split."""
    path = sources.path(dataset.images, "archive")
    names = (name for name, _ in files_of_tar(path) if _is_picture(name))
    pictures = [name.removeprefix(FOLDER) for name in names]
    folders = sorted({name.split("/")[0] for name in pictures})
    splits = {folder: split_of(position) for position, folder in enumerate(folders)}
    classes = [ImageClass(f, s) for s in get_args(Split) for f in folders if splits[f] == s]
    members = [sorted(n for n in pictures if n.split("/")[0] == c.name) for c in classes]
    rows = {name: row for row, name in enumerate(n for names in members for n in names)}

    def encoded() -> Iterator[tuple[int, str, bytes]]:
        """Yields encoded images in the order of the archive, a compressed tar."""
        for name, read in files_of_tar(path):
            if _is_picture(name):
                yield rows[name.removeprefix(FOLDER)], f"{path}, {name}", read()

    return Contents(
        classes=classes,
        counts=[len(names) for names in members],
        images=decode_all(encoded(), dataset.image_size, dataset.pixels),
    )
