"""CIFAR-FS (Bertinetto et al. 2019) and FC100 (Oreshkin et al. 2018) out of CIFAR-100.

Both take all 600 images of a class, the training and the test file's. CIFAR-FS splits the 100
classes at random; FC100 splits the 20 super-classes, so that base, val and novel share none.
"""

import json
from pathlib import Path

import numpy as np

from epcore.data import pickles
from epcore.data.archives import files_of_tar
from epcore.data.contents import Contents, ImageClass
from epcore.data.datasets import CifarData
from epcore.data.sources import Sources

SIZE = 32
PARTS = ("cifar-100-python/train", "cifar-100-python/test")
META = "cifar-100-python/meta"
NAMES = ("fine_label_names", "coarse_label_names")


def contents(dataset: CifarData, sources: Sources) -> Contents:
    """Classes in the order of their names within a split; images in the order of the files."""
    archive = sources.path(dataset.images, "archive")
    names, groups, fine, coarse, images = read(archive)
    group_of = dict(zip(fine.tolist(), coarse.tolist(), strict=True))
    classes = []
    for split, path in sources.lists(dataset.lists).items():
        class_entries = json.loads(path.read_text(encoding="utf-8"))
        # FC100 lists super-classes, CIFAR-FS pairs of super-class and class.
        class_names = {entry if isinstance(entry, str) else entry[1] for entry in class_entries}
        listed_names = groups if isinstance(class_entries[0], str) else names
        for label in sorted(range(len(names)), key=names.__getitem__):
            group = groups[group_of[label]]
            if (group if listed_names is groups else names[label]) in class_names:
                classes.append((label, ImageClass(names[label], split, group)))
    rows = [np.flatnonzero(fine == label) for label, _ in classes]

    return Contents(
        classes=[c for _, c in classes],
        counts=[len(r) for r in rows],
        images=enumerate(images[place] for place in np.concatenate(rows)),
    )


def read(archive: Path) -> tuple[list[str], list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Names of classes and of super-classes, labels of both `(N,)`, images `(N, 32, 32, 3)`."""
    contents = {
        name: pickles.load(read_file(), f"{archive}, {name}")
        for name, read_file in files_of_tar(archive)
        if name in (*PARTS, META)
    }
    names, groups = (contents[META][key] for key in NAMES)
    fine, coarse, data = (
        np.concatenate([contents[part][key] for part in PARTS])
        for key in ("fine_labels", "coarse_labels", "data")
    )
    images = data.reshape(-1, 3, SIZE, SIZE).transpose(0, 2, 3, 1)
    return names, groups, fine, coarse, images
