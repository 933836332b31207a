"""Which classes are base and novel, and which of them a split is scored on."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from epcore.data.contents import ImageClass
from epcore.data.store import ImageStore
from epcore.errors import UserError

TestedSplit = Literal["val", "novel"]
# The base classes that a split is scored on, by their group in the store.
SCORED_BASE: dict[TestedSplit, str] = {"val": "base_classes_1", "novel": "base_classes_2"}


@dataclass(frozen=True)
class Subsets:
    """The classes of a split; all int64, ascending.

    base: labels of all base classes. scored: positions in `base` of those that are scored.
    novel: labels of the novel classes.
    """

    base: np.ndarray
    scored: np.ndarray
    novel: np.ndarray

    @classmethod
    def of(cls, store: ImageStore, split: TestedSplit) -> "Subsets":
        """Raises `UserError` if the store's base classes have no such group."""
        base = np.array(store.class_indices("base"))
        group = SCORED_BASE[split]
        scored = np.flatnonzero([store.classes[label].group == group for label in base])
        if not len(scored):
            raise UserError(
                f"data set {store.name} is not made for ImageNet-FS: no base class is of the "
                f"group {group!r}",
                "take one of kind imagenet-fs, or glyphs of the selection large",
            )
        return cls(base, scored, np.array(store.class_indices(split)))


def check_pair(images: ImageStore, queries: ImageStore, exemplars: int) -> None:
    """Both stores have the same classes, and each novel class enough images for its exemplars.

    Raises:
        UserError: naming the first class that is amiss.
    """
    remedy = "build both from the same source, with the same reading of the split"
    if len(images.classes) != len(queries.classes):
        raise UserError(
            f"data set {images.name} has {len(images.classes)} classes, {queries.name} "
            f"{len(queries.classes)}",
            remedy,
        )
    for of_images, of_queries in zip(images.classes, queries.classes, strict=True):
        if of_images != of_queries:
            raise UserError(
                f"data set {images.name} has the class {_described(of_images)} where "
                f"{queries.name} has {_described(of_queries)}",
                remedy,
            )
    counts = np.bincount(images.labels, minlength=len(images.classes))
    for label, image_class in enumerate(images.classes):
        needed = 1 if image_class.split == "base" else exemplars
        if counts[label] < needed:
            raise UserError(
                f"data set {images.name}: class {image_class.name!r} has {counts[label]} "
                f"images, {needed} are needed",
                "the source is incomplete",
            )
    tested = np.bincount(queries.labels, minlength=len(queries.classes))
    if not tested.all():
        missing = queries.classes[int(tested.argmin())].name
        raise UserError(f"data set {queries.name}: class {missing!r} has no image", remedy)


def _described(image_class: ImageClass) -> str:
    """The name of a class, and its group or split."""
    return f"{image_class.name!r} ({image_class.group or image_class.split})"
