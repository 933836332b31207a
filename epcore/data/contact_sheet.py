"""A picture of a data set, to see with one's own eyes what the networks are given."""

import textwrap
from pathlib import Path
from typing import get_args

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from epcore.data.config import Split
from epcore.data.store import ImageStore
from epcore.files import atomic

CLASSES, IMAGES = 8, 10  # of each split, of each class
TILE = 64  # pixels, about: small images are magnified by a whole number
GAP = 4
TITLE_HEIGHT = 36
NAME_WIDTH = 230
NAME_LETTERS = 34  # that fit into NAME_WIDTH on one line


def draw(store: ImageStore, path: Path) -> None:
    """Writes a PNG with a grid for each split: a row per class, its name beside its images.

    The classes are evenly spaced over the split, the images over the class. A class with fewer
    images shows all that it has.
    """
    shown = {split: _evenly(store.class_indices(split), CLASSES) for split in get_args(Split)}
    magnification = max(1, round(TILE / store.images.shape[1]))
    height, width = (magnification * length + GAP for length in store.images.shape[1:3])
    sheet = Image.new(
        "RGB",
        (
            NAME_WIDTH + width * IMAGES + GAP,
            TITLE_HEIGHT * (1 + len(shown)) + height * sum(map(len, shown.values())) + GAP,
        ),
        "white",
    )
    pen = ImageDraw.Draw(sheet)
    _write(pen, 0, f"{store.name}: {len(store.classes)} classes, {len(store.images)} images", 20)
    top = TITLE_HEIGHT
    for split, labels in shown.items():
        _write(pen, top, _split_title(store, split), 16)
        top += TITLE_HEIGHT
        if labels:
            grid = _grid(store, labels, magnification)
            sheet.paste(Image.fromarray(grid), (NAME_WIDTH, top))
        for label in labels:
            _write(pen, top, _class_title(store, label), 12)
            top += height
    with atomic(path) as temporary:
        sheet.save(temporary, format="PNG")


def _evenly(items: list[int], count: int) -> list[int]:
    """`count` of the items from the first to the last, or all if there are no more."""
    places = np.linspace(0, len(items) - 1, min(count, len(items)))
    return [items[place] for place in places.round().astype(int)]


def _grid(store: ImageStore, labels: list[int], factor: int) -> np.ndarray:
    """A row for each class with a gap after every image, uint8 `(height, width, 3)`."""
    # Magnified by whole numbers, which shows the pixels as they are.
    height, width = (factor * length for length in store.images.shape[1:3])
    tiles = np.full((len(labels), IMAGES, height + GAP, width + GAP, 3), 255, np.uint8)
    for line, label in zip(tiles, labels, strict=True):
        rows = _evenly(np.flatnonzero(store.labels == label).tolist(), IMAGES)
        pixels = store.pixels(np.array(rows)).repeat(factor, axis=1).repeat(factor, axis=2)
        line[: len(rows), :height, :width] = pixels
    lines, columns = len(labels) * (height + GAP), IMAGES * (width + GAP)
    return tiles.swapaxes(1, 2).reshape(lines, columns, 3)


def _split_title(store: ImageStore, split: Split) -> str:
    classes, images = len(store.class_indices(split)), len(store.image_indices(split))
    return f"{split}: {classes} classes, {images} images"


def _class_title(store: ImageStore, label: int) -> str:
    image_class = store.classes[label]
    lines = textwrap.wrap(image_class.name, NAME_LETTERS)
    return "\n".join([*lines, f"[{image_class.group}]"] if image_class.group else lines)


def _write(pen: ImageDraw.ImageDraw, top: int, text: str, size: int) -> None:
    pen.text((2 * GAP, top + 2 * GAP), text, fill="black", font=ImageFont.load_default(size))


def run(data: Path, out: Path) -> None:
    """The stage `contact-sheet`."""
    draw(ImageStore.open(data), out)
