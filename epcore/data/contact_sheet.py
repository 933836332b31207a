"""A picture of a data set, to see with one's own eyes what the networks are given."""

import textwrap
from pathlib import Path
from typing import get_args

import numpy as np
from matplotlib.figure import Figure

from epcore.data.config import Split
from epcore.data.store import ImageStore
from epcore.files import atomic

CLASSES, IMAGES = 8, 10  # of each split, of each class
TILE = 0.66  # inches
NAMES = 2.4  # inches


def draw(store: ImageStore, path: Path) -> None:
    """Writes a PNG with a panel for each split: a row per class, its name beside its images.

    The classes are evenly spaced over the split, the images over the class. A class with fewer
    images shows all that it has.
    """
    shown = {split: _evenly(store.class_indices(split), CLASSES) for split in get_args(Split)}
    shown = {split: labels for split, labels in shown.items() if labels}
    heights = [len(labels) for labels in shown.values()]
    size = (NAMES + TILE * IMAGES, TILE * (sum(heights) + 1.5))
    figure = Figure(size, layout="constrained")
    figure.suptitle(f"{store.name}: {len(store.classes)} classes, {len(store.images)} images")
    panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)
    for axes, (split, labels) in zip(panels[:, 0], shown.items(), strict=True):
        place = (0, IMAGES, len(labels), 0)
        axes.imshow(_grid(store, labels), extent=place, interpolation="nearest")
        axes.set_title(_split_title(store, split), loc="left", fontsize=9)
        axes.set_yticks(
            np.arange(len(labels)) + 0.5, [_class_title(store, c) for c in labels], fontsize=8
        )
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    with atomic(path) as temporary:
        figure.savefig(temporary, format="png", dpi=100, bbox_inches="tight")


def _evenly(items: list[int], count: int) -> list[int]:
    """`count` of the items from the first to the last, or all if there are no more."""
    places = np.linspace(0, len(items) - 1, min(count, len(items)))
    return [items[place] for place in places.round().astype(int)]


def _grid(store: ImageStore, labels: list[int]) -> np.ndarray:
    """A row for each class, white where it has no more images, uint8 `(height, width, 3)`."""
    height, width = store.images.shape[1:3]
    tiles = np.full((len(labels), IMAGES, height + 1, width + 1, 3), 255, np.uint8)
    for line, label in zip(tiles, labels, strict=True):
        rows = _evenly(np.flatnonzero(store.labels == label).tolist(), IMAGES)
        line[: len(rows), :height, :width] = store.pixels(np.array(rows))
    return tiles.swapaxes(1, 2).reshape(len(labels) * (height + 1), IMAGES * (width + 1), 3)


def _split_title(store: ImageStore, split: Split) -> str:
    classes, images = len(store.class_indices(split)), len(store.image_indices(split))
    return f"{split}: {classes} classes, {images} images"


def _class_title(store: ImageStore, label: int) -> str:
    image_class = store.classes[label]
    lines = textwrap.wrap(image_class.name, 34)
    return "\n".join([*lines, f"[{image_class.group}]"] if image_class.group else lines)


def run(data: Path, out: Path) -> None:
    """The stage `contact-sheet`."""
    draw(ImageStore.open(data), out)
