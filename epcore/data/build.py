"""From a data set's description to its packed store."""

import importlib
from pathlib import Path
from typing import get_args

import numpy as np

from epcore.data.config import DataConfig, Split
from epcore.data.contents import Contents
from epcore.data.datasets import BESIDE_PIXELS, DataSet, Expected, OfficialData
from epcore.data.sources import Sources
from epcore.data.store import write_store
from epcore.errors import UserError

# Kind of data set -> module of epcore.data.builders with its contents().
BUILDERS = {
    "glyphs": "glyphs",
    "more-glyphs": "glyphs",
    "folder": "folder",
    "npz": "arrays",
    "cifar-100": "cifar100",
    "omniglot": "omniglot",
    "cub": "cub",
    "mini-imagenet": "mini_imagenet",
    "mini-imagenet-pickles": "mini_imagenet_pickles",
    "tiered-imagenet": "tiered_imagenet",
    "tiered-imagenet-pickles": "tiered_imagenet_pickles",
    "imagenet-fs": "imagenet_fs",
}


def contents_of(dataset: DataSet, sources: Sources) -> Contents:
    """Classes, labels and, not decoded before they are asked for, images of a data set.

    Raises:
        UserError: for the first thing that is wrong with its files.
    """
    builder = importlib.import_module(f"epcore.data.builders.{BUILDERS[dataset.kind]}")
    contents: Contents = builder.contents(dataset, sources)
    return contents


def run(config: DataConfig, sources: list[Path], out: Path) -> None:
    """The stage `data`."""
    dataset = config.dataset
    receipts = Sources.read(sources)
    contents = contents_of(dataset, receipts)
    if isinstance(dataset, OfficialData):
        check_counts(out.name, contents, dataset.expected)
    contents.facts.update(
        dataset=dataset.model_dump(mode="json", exclude=set(BESIDE_PIXELS)),
        sources=receipts.checksums(),
    )
    write_store(out, contents, dataset.image_size, dataset.shared_images)


def check_counts(name: str, contents: Contents, expected: Expected) -> None:
    """Classes and images of each split are as many as were published.

    Raises:
        UserError: for the first number that differs.
    """
    images = np.array(contents.counts)
    for split in get_args(Split):
        in_split = np.array([c.split == split for c in contents.classes])
        counts = {"classes": in_split.sum(), "images": images[in_split].sum()}
        for what, count in counts.items():
            expected_count = getattr(getattr(expected, what), split, count)
            if count != expected_count:
                raise UserError(
                    f"data set {name}: split {split} has {count:,} {what}, {expected_count:,} are "
                    "published",
                    "a source is incomplete or another version",
                )
