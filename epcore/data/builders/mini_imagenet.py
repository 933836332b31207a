"""mini-ImageNet out of ILSVRC2012, with the split of Ravi and Larochelle (2017).

The split's name n0153282900000005.jpg means: class n01532829, image of rank 5. The rank counts,
from 1, the class's training images in the order of the numbers in their file names; nobody
published a generator, and this is what all public builders take it for.
"""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np

from epcore.data.contents import Contents, ImageClass
from epcore.data.datasets import MiniImageNetData
from epcore.data.ilsvrc import DevelopmentKit, TrainingImages
from epcore.data.pictures import decode_all
from epcore.data.sources import Sources


def read_ranks(path: Path) -> dict[str, np.ndarray]:
    """The ranks of each class's images, both ascending."""
    ranks: dict[str, list[int]] = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            digits = row["filename"].removeprefix(row["label"]).removesuffix(".jpg")
            ranks[row["label"]].append(int(digits))
    return {synset: np.sort(ranks[synset]) for synset in sorted(ranks)}


def contents(dataset: MiniImageNetData, sources: Sources) -> Contents:
    """Classes by synset within a split, images by rank."""
    ranks: dict[ImageClass, np.ndarray] = {}
    for split, path in sources.lists(dataset.lists).items():
        ranks |= {ImageClass(name, split): rank for name, rank in read_ranks(path).items()}
    kit = DevelopmentKit.read(sources.path(dataset.devkit, "kit"))
    training = TrainingImages(sources.path(dataset.images, "train"), kit, [c.name for c in ranks])
    numbers = [(c.name, training.numbers(c.name)[rank - 1]) for c, rank in ranks.items()]
    return Contents(
        classes=list(ranks),
        counts=[len(rank) for rank in ranks.values()],
        images=decode_all(training.read(numbers), dataset.image_size, dataset.pixels),
    )
