"""A data set of the user's own as one `.npz` file.

images: uint8 `(N, height, width, 3)`, or `(N, height, width)` in gray; labels: `(N,)`, whole
numbers or texts; split, unless the data set's `split` draws the classes from a seed: texts `(N,)`,
base, val or novel.
"""

from pathlib import Path

import numpy as np
from PIL import Image

from epcore.data.builders.folder import SPLITS, by_split, draw_split
from epcore.data.contents import Contents, ImageClass
from epcore.data.datasets import OwnData
from epcore.data.pictures import to_array
from epcore.data.sources import Sources
from epcore.errors import UserError
from epcore.files import sha256


def contents(dataset: OwnData, sources: Sources) -> Contents:
    """Classes by split, then name; images in the file's order.

    Raises:
        UserError: for a missing array, a shape or type that does not fit, a class in two splits.
    """
    path = Path(dataset.path)
    arrays = _read(path, ("images", "labels") if dataset.split else ("images", "labels", "split"))
    images = arrays.pop("images")
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or images.shape[3:] not in ((), (3,)):
        raise UserError(
            f"{path}: images must be uint8 of shape (N, height, width, 3) or (N, height, width), "
            f"they are {images.dtype} {images.shape}"
        )
    if not images.size:
        raise UserError(f"{path}: images has no pixels, its shape is {images.shape}", "put some in")
    texts = {name: _texts(path, name, array) for name, array in arrays.items()}
    for name, array in texts.items():
        if array.shape != (len(images),):
            raise UserError(f"{path}: {name} must have shape ({len(images)},), as images has")
    labels = texts["labels"]
    if dataset.split:
        classes = draw_split(np.unique(labels).tolist(), dataset.split, str(path))
    else:
        classes = _listed_classes(path, labels, texts["split"])
    rows = [np.flatnonzero(labels == c.name) for c in classes]
    order = np.concatenate(rows)

    pictures = (
        to_array(Image.fromarray(images[place]), dataset.image_size, dataset.pixels)
        for place in order
    )
    return Contents(
        classes=classes,
        counts=[len(r) for r in rows],
        images=enumerate(pictures),
        facts={"npz_sha256": sha256(path)},
        name_of=lambda row: f"row {order[row]} of {path}",
    )


def _read(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise UserError(
            f"{path} does not exist", "put the file there or mend the data set's `path`"
        )
    try:
        # numpy leaves a damaged file that it opened itself open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            present = {name: arrays[name] for name in names if name in arrays}
            two_splits = "split" in arrays and "split" not in names
    except Exception as error:  # zipfile, zlib and numpy each raise their own
        raise UserError(
            f"{path} cannot be read ({error})", "write it with numpy.savez, without objects"
        ) from None
    if two_splits:
        raise UserError(
            f"{path} has an array 'split', and the data set has the key `split` as well",
            "remove one of the two",
        )
    missing = [name for name in names if name not in present]
    if missing:
        raise UserError(
            f"{path} has no array {missing[0]!r}",
            "a data set of kind npz needs images, labels and either split or the key `split` "
            "with the numbers of classes and a seed",
        )
    return present


def _texts(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    try:
        if array.dtype.kind == "S":
            return np.char.decode(array, "utf-8")
        if array.dtype.kind in "Uiu":
            return array.astype(str)
        problem = f"they are {array.dtype}"
    except UnicodeDecodeError as error:
        problem = str(error)
    raise UserError(f"{path}: {name} must be whole numbers or texts in UTF-8 ({problem})")


def _listed_classes(path: Path, labels: np.ndarray, split: np.ndarray) -> list[ImageClass]:
    pairs = sorted(set(zip(labels.tolist(), split.tolist(), strict=True)))
    for name, word in pairs:
        if word not in SPLITS:
            raise UserError(
                f"{path}: class {name!r} has the split {word!r}", "use base, val or novel"
            )
    return by_split({ImageClass(name, SPLITS[word]) for name, word in pairs})
