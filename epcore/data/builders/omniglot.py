"""Omniglot with the split of Vinyals et al. (2016): each of four rotations is a class.

A line of the split is alphabet/character/rotation. Pictures stay black on white; they are resized
and then turned anticlockwise, as often as their rotation says.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import PurePosixPath
from zipfile import ZipFile

import numpy as np

from epcore.data.contents import Contents, ImageClass
from epcore.data.datasets import OmniglotData
from epcore.data.pictures import decode
from epcore.data.sources import Sources

TURNS = {"rot000": 0, "rot090": 1, "rot180": 2, "rot270": 3}


def contents(dataset: OmniglotData, sources: Sources) -> Contents:
    """Classes in the order of their names within a split, images in the order of their names."""
    archives = [sources.path(dataset.images, key) for key in ("background", "evaluation")]
    # Character -> (archive, member) of its drawings.
    drawings: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, path in enumerate(archives):
        with ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                parts = PurePosixPath(name).parts
                if len(parts) == 4 and parts[3].endswith(".png") and parts[0] == path.stem:
                    drawings["/".join(parts[1:3])].append((number, name))
    classes = []
    for split, path in sources.lists(dataset.lists).items():
        for line in sorted(path.read_text(encoding="utf-8").split()):
            classes.append(ImageClass(line, split, line.split("/")[0]))
    counts = [len(drawings[c.name.rpartition("/")[0]]) for c in classes]

    def images() -> Iterator[np.ndarray]:
        with ExitStack() as stack:
            opened = [stack.enter_context(ZipFile(path)) for path in archives]
            for image_class in classes:
                character, _, rotation = image_class.name.rpartition("/")
                for number, name in drawings[character]:
                    data, place = opened[number].read(name), f"{archives[number]}, {name}"
                    image = decode(data, place, dataset.image_size, dataset.pixels)
                    yield np.rot90(image, TURNS[rotation])

    return Contents(
        classes=classes,
        counts=counts,
        images=enumerate(images()),
    )
