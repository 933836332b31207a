"""tiered-ImageNet (Ren et al. 2018) out of ILSVRC2012: all training images of 608 classes.

The split's rows are pairs of class and super-class; the super-classes of the splits are disjoint.
"""

import csv
from pathlib import Path

from epcore.data.contents import Contents, ImageClass
from epcore.data.datasets import TieredImageNetData
from epcore.data.ilsvrc import DevelopmentKit, TrainingImages
from epcore.data.pictures import decode_all
from epcore.data.sources import Sources


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Class and super-class of each row of a list, which has no header."""
    with path.open(encoding="utf-8", newline="") as file:
        return [(synset, group) for synset, group in csv.reader(file)]


def contents(dataset: TieredImageNetData, sources: Sources) -> Contents:
    """Classes by synset within a split, images by the number in their names."""
    classes = [
        ImageClass(synset, split, group)
        for split, path in sources.lists(dataset.lists).items()
        for synset, group in sorted(read_pairs(path))
    ]
    kit = DevelopmentKit.read(sources.path(dataset.devkit, "kit"))
    training = TrainingImages(sources.path(dataset.images, "train"), kit, [c.name for c in classes])
    by_synset = [(c.name, training.numbers(c.name)) for c in classes]
    return Contents(
        classes=classes,
        counts=[len(numbers) for _, numbers in by_synset],
        images=decode_all(training.read(by_synset), dataset.image_size, dataset.pixels),
    )
