"""ImageNet-FS (Hariharan and Girshick 2017) out of ILSVRC2012: 389 base and 611 novel classes.

The published file lists `label_names`, 1000 synsets in no order, and indices of the subsets.
`by-name` takes an index into `label_names`, which is the benchmark's definition.
`by-sorted-index` takes it into the sorted synsets, as the code of LwoF and wDAE-GNN did; only one
of 1000 positions agrees. The subset is kept as the class's group; `val` are the 300 novel classes
for validation, `novel` the 311 for test.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from epcore.data.config import Split
from epcore.data.contents import Contents, ImageClass
from epcore.data.datasets import ImageNetFsData
from epcore.data.ilsvrc import DevelopmentKit, TrainingImages, validation_images
from epcore.data.pictures import decode_all
from epcore.data.sources import Sources

Reading = Literal["by-name", "by-sorted-index"]
# The number of images of each class; row, name and content of each image.
Encoded = tuple[list[int], Iterator[tuple[int, str, bytes]]]
SUBSETS: dict[str, Split] = {
    "base_classes_1": "base",
    "base_classes_2": "base",
    "novel_classes_1": "val",
    "novel_classes_2": "novel",
}


def read_subsets(path: Path, reading: Reading) -> dict[str, list[str]]:
    """The synsets of the four subsets, in one of the two readings."""
    lists = json.loads(path.read_text(encoding="utf-8"))
    names = lists["label_names"] if reading == "by-name" else sorted(lists["label_names"])
    return {subset: [names[index] for index in lists[subset]] for subset in SUBSETS}


def contents(dataset: ImageNetFsData, sources: Sources) -> Contents:
    """All 1000 classes by synset; training images by number, or validation images by number."""
    subsets = read_subsets(sources.path(dataset.lists, "classes"), dataset.reading)
    classes = sorted(
        (ImageClass(s, SUBSETS[subset], subset) for subset in SUBSETS for s in subsets[subset]),
        key=lambda c: c.name,
    )
    kit = DevelopmentKit.read(sources.path(dataset.devkit, "kit"))
    images = sources.path(dataset.images, dataset.part)
    part = _training if dataset.part == "train" else _validation
    counts, encoded = part(images, kit, [c.name for c in classes])
    return Contents(
        classes=classes,
        counts=counts,
        images=decode_all(encoded, dataset.image_size, dataset.pixels),
    )


def _training(path: Path, kit: DevelopmentKit, synsets: list[str]) -> Encoded:
    training = TrainingImages(path, kit, synsets)
    by_synset = [(synset, training.numbers(synset)) for synset in synsets]
    return [len(numbers) for _, numbers in by_synset], training.read(by_synset)


def _validation(path: Path, kit: DevelopmentKit, synsets: list[str]) -> Encoded:
    label_of = {synset: label for label, synset in enumerate(synsets)}
    labels = np.array([label_of[synset] for synset in kit.validation])
    rows = np.empty(len(labels), dtype=np.int64)
    rows[np.argsort(labels, kind="stable")] = np.arange(len(labels))

    def encoded() -> Iterator[tuple[int, str, bytes]]:
        for number, name, data in validation_images(path, kit):
            yield int(rows[number - 1]), name, data

    return np.bincount(labels, minlength=len(synsets)).tolist(), encoded()
