"""Packed data sets of noise, of any size."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from epcore.data.contents import Contents, ImageClass
from epcore.data.store import ImageStore, write_store


def noise_store(folder: Path, pixels: int, classes: int, images: int) -> ImageStore:
    """`images` of each class; half of the classes are base, the others val and novel in turns."""
    splits = ["base", "val", "base", "novel"]
    kinds = [ImageClass(f"class {n}", splits[n % 4]) for n in range(classes)]
    count = classes * images

    def drawn() -> Iterator[tuple[int, np.ndarray]]:
        random = np.random.default_rng(0)
        for row in range(count):
            yield row, random.integers(0, 256, (pixels, pixels, 3), dtype=np.uint8)

    write_store(folder, Contents(kinds, [images] * classes, drawn()), pixels, "keep")
    return ImageStore.open(folder)
