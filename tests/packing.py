"""Stores out of arrays, and what a store says of itself."""

import json

import numpy as np

from epcore.data.contents import Contents
from epcore.data.store import ImageStore, write_store


def pack(directory, classes, labels, images, size, facts=None, *, shared_images="keep"):
    """Writes a store of images in the order of the labels, which ascend, and opens it."""
    assert (np.diff(labels) >= 0).all()
    counts = np.bincount(labels, minlength=len(classes)).tolist()
    contents = Contents(classes, counts, enumerate(images), facts or {})
    write_store(directory, contents, size, shared_images)
    return ImageStore.open(directory)


def provenance(store):
    """What it was built from, as its `store.json` says."""
    return json.loads((store.directory / "store.json").read_text(encoding="utf-8"))["provenance"]
