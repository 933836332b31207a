"""tiered-ImageNet out of the pickles of its authors (Ren et al. 2018).

`*_images_png.pkl` is a list of arrays, each a PNG of 84x84; `*_labels.pkl` has the class and the
super-class of each, and their names. Classes have names instead of synsets there; two classes may
share one (crane, the bird and the machine), so a number is added to the second.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np

from epcore.data import pickles
from epcore.data.config import Split
from epcore.data.contents import Contents, ImageClass, check_groups
from epcore.data.datasets import Pixels, TieredImageNetPickles
from epcore.data.pictures import decode_all
from epcore.data.sources import Sources
from epcore.errors import UserError

SIZE = 84
PNG = b"\x89PNG\r\n\x1a\n"
LABELS = ("label_specific", "label_general", "label_specific_str", "label_general_str")


def contents(dataset: TieredImageNetPickles, sources: Sources) -> Contents:
    """Classes in the order of the pickles' labels within a split, images in the pickles' order.

    Raises:
        UserError: if labels and images do not fit together.
    """
    classes: list[ImageClass] = []
    rows: list[np.ndarray] = []  # of each split: the store's row of each image
    counts: list[int] = []
    for split in get_args(Split):
        specific, names, groups = _labels(sources.path(dataset.images, f"{split}-labels"))
        order = np.argsort(specific, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order)) + sum(map(len, rows))
        rows.append(place)
        counts += np.bincount(specific, minlength=len(names)).tolist()
        classes += [ImageClass(n, split, group) for n, group in zip(names, groups, strict=True)]
    check_groups("tiered-ImageNet", classes)

    def encoded() -> Iterator[tuple[int, str, bytes]]:
        for split, places in zip(get_args(Split), rows, strict=True):
            path, number = sources.path(dataset.images, f"{split}-images"), 0
            for number, png in enumerate(pickles.byte_strings(path, PNG), start=1):
                if number > len(places):
                    break
                yield int(places[number - 1]), f"{path}, image {number}", png
            if number != len(places):
                raise UserError(
                    f"{path} has {number:,} images or more, its labels are {len(places):,}",
                    "get both again",
                )

    return Contents(
        classes=_unique(classes),
        counts=counts,
        images=decode_all(encoded(), SIZE, Pixels()),
    )


def _labels(path: Path) -> tuple[np.ndarray, list[str], list[str]]:
    """The class of each image of a split; the name and the super-class of each class."""
    content = pickles.load(path.read_bytes(), str(path), LABELS)
    try:
        specific, general = (pickles.whole_numbers(content[key]) for key in LABELS[:2])
        names, groups = (pickles.texts(content[key]) for key in LABELS[2:])
        group_of = dict(zip(specific.tolist(), general.tolist(), strict=True))
        if sorted(group_of) != list(range(len(names))):
            raise ValueError
        if not set(group_of.values()) <= set(range(len(groups))):
            raise ValueError
        return specific, names, [groups[group_of[label]] for label in range(len(names))]
    except (TypeError, ValueError):
        raise UserError(f"{path}: labels and names of classes do not fit together") from None


def _unique(classes: list[ImageClass]) -> list[ImageClass]:
    counts: Counter[str] = Counter()
    unique = []
    for c in classes:
        counts[c.name] += 1
        name = c.name if counts[c.name] == 1 else f"{c.name} ({counts[c.name]})"
        unique.append(ImageClass(name, c.split, c.group))
    return unique
