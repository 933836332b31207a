"""A data set of the user's own as one `.npz` file.

images: uint8 `(N, height, width, 3)`, or `(N, height, width)` in grey; labels: `(N,)`, whole
numbers or texts; split, unless the data set's `split` draws the classes from a seed: texts `(N,)`,
base, val or novel.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from epcore.data.arrays import load_arrays
from epcore.data.builders.folder import ORDER, SPLITS, draw_split
from epcore.data.contents import Contents, ImageClass, in_label_order
from epcore.data.pictures import to_array
from epcore.data.sources import Sources
from epcore.errors import UserError
from epcore.files import sha256
from epcore.plan.datasets import ArraysData


def contents(dataset: ArraysData, sources: Sources) -> Contents:
    """Classes by split, then name; images in the file's order.

    Raises:
        UserError: for a missing array, a shape or type that does not fit, a class in two splits.
    """
    path = Path(dataset.path)
    keys = ("images", "labels") if dataset.split else ("images", "labels", "split")
    found = load_arrays(path, lambda *arrays: arrays, keys, "data set")
    images, labels = found[0], found[1].astype(str)
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or images.shape[3:] not in ((), (3,)):
        raise UserError(
            f"{path}: images must be uint8 of shape (N, height, width, 3) or (N, height, width), "
            f"they are {images.dtype} {images.shape}"
        )
    for name, array in zip(keys[1:], found[1:], strict=True):
        if array.shape != (len(images),):
            raise UserError(f"{path}: {name} must have shape ({len(images)},), as images has")
    if dataset.split:
        classes = draw_split(np.unique(labels).tolist(), dataset.split, str(path))
    else:
        classes = _listed(path, labels, found[2])
    rows = [np.flatnonzero(labels == c.name) for c in classes]

    def pictures() -> Iterator[tuple[int, np.ndarray]]:
        for row, place in enumerate(np.concatenate(rows)):
            picture = Image.fromarray(images[place])
            yield row, to_array(picture, dataset.image_size, dataset.pixels)

    return Contents(
        classes=classes,
        labels=in_label_order([len(r) for r in rows]),
        images=pictures(),
        image_size=dataset.image_size,
        origin={"pixels": str(dataset.pixels), "npz_sha256": sha256(path)},
        name_of=lambda row: f"row {np.concatenate(rows)[row]} of {path}",
    )


def _listed(path: Path, labels: np.ndarray, split: np.ndarray) -> list[ImageClass]:
    classes = []
    for name in np.unique(labels).tolist():
        splits = np.unique(split[labels == name]).tolist()
        if len(splits) > 1 or splits[0] not in SPLITS:
            raise UserError(
                f"{path}: class {name!r} has the split {' and '.join(splits)}; each class is in "
                "one of base, val and novel"
            )
        classes.append(ImageClass(name, SPLITS[splits[0]]))
    return sorted(classes, key=lambda c: (ORDER[c.split], c.name))
