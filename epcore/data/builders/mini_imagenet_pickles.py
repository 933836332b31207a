"""mini-ImageNet out of the pickles of Ren et al. (2018), `mini-imagenet-cache-*.pkl`.

Each holds `image_data`, uint8 `(N, 84, 84, 3)` in RGB, and `class_dict`, the rows of each class.
Their pictures are resized whole, so they are not those of EPNet's authors.
"""

from collections.abc import Iterator

import numpy as np

from epcore.data import pickles
from epcore.data.builders.mini_imagenet import read_ranks
from epcore.data.config import Split
from epcore.data.contents import Contents, ImageClass
from epcore.data.datasets import MiniImageNetPickles
from epcore.data.sources import Sources
from epcore.errors import UserError

SIZE = 84


def contents(dataset: MiniImageNetPickles, sources: Sources) -> Contents:
    """Classes by synset within a split; images in the pickle's order.

    Raises:
        UserError: if a pickle's classes or rows are not those of its split.
    """
    expected = {
        split: {synset: len(ranks) for synset, ranks in read_ranks(path).items()}
        for split, path in sources.lists(dataset.lists).items()
    }
    classes = [ImageClass(name, split) for split, counts in expected.items() for name in counts]
    counts = [count for split_counts in expected.values() for count in split_counts.values()]

    images = (  # with one pickle in memory at a time
        image
        for split, split_counts in expected.items()
        for image in _images_of(dataset, sources, split, split_counts)
    )
    return Contents(
        classes=classes,
        counts=counts,
        images=enumerate(images),
    )


def _images_of(
    dataset: MiniImageNetPickles, sources: Sources, split: Split, expected: dict[str, int]
) -> Iterator[np.ndarray]:
    path = sources.path(dataset.images, split)
    content = pickles.load(path.read_bytes(), str(path), ("image_data", "class_dict"))
    data, rows = content["image_data"], content["class_dict"]
    if getattr(data, "shape", ())[1:] != (SIZE, SIZE, 3) or data.dtype != np.uint8:
        raise UserError(f"{path}: image_data is not an array of 84 x 84 x 3 bytes")
    try:
        counts = {synset: len(rows[synset]) for synset in sorted(rows)}
        places = np.concatenate([pickles.whole_numbers(rows[synset]) for synset in sorted(rows)])
        complete = sorted(places.tolist()) == list(range(len(data)))
    except (TypeError, ValueError, LookupError):  # no mapping of lists of numbers
        counts, complete = {}, False
    if counts != expected or not complete:
        raise UserError(
            f"{path}: its classes or their numbers of images are not those of the split {split}",
            "was it renamed?",
        )
    for place in places:
        yield data[place]
