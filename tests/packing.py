"""Stores out of arrays, and what a store says of itself."""

import json

from epcore.data.contents import Contents
from epcore.data.store import ImageStore, write_store


def pack(directory, classes, labels, images, size, origin=None, *, shared_images="keep"):
    """Writes a store of images in the order of the labels, and opens it."""
    write_store(
        directory,
        Contents(
            classes=classes,
            labels=labels,
            images=enumerate(images),
            image_size=size,
            origin=origin or {},
        ),
        shared_images,
    )
    return ImageStore.open(directory)


def provenance(store):
    """What it was built from, as its `store.json` says."""
    return json.loads((store.directory / "store.json").read_text(encoding="utf-8"))["provenance"]
