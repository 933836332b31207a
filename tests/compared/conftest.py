"""Methods in float64, and a toy of pictures whose classes are colors."""

import numpy as np
import pytest
import torch
from packing import pack

from epcore.data.contents import ImageClass

PIXELS, IMAGES = 28, 12
SPLITS = ["base"] * 24 + ["val"] * 8 + ["novel"] * 8


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def _store(folder, shuffled):
    random = np.random.default_rng(0)
    classes = [ImageClass(f"class {number:02}", split) for number, split in enumerate(SPLITS)]
    labels = np.repeat(np.arange(len(SPLITS)), IMAGES)
    # Each class has a color in its upper and one in its lower half.
    colors = random.uniform(20, 235, (len(SPLITS), 2, 3))
    shown = random.permutation(labels) if shuffled else labels
    images = np.repeat(colors[shown], PIXELS // 2, axis=1)[:, :, None]
    images = images + random.normal(0, 12, (len(labels), PIXELS, PIXELS, 3))
    return pack(folder, classes, labels, images.clip(0, 255).astype(np.uint8), PIXELS)


@pytest.fixture(scope="session")
def colors(tmp_path_factory):
    """40 classes of 12 images of 28x28 pixels, easy to tell apart."""
    return _store(tmp_path_factory.mktemp("colors") / "store", shuffled=False)


@pytest.fixture(scope="session")
def shuffled(tmp_path_factory):
    """The same pictures, whose classes mean nothing."""
    return _store(tmp_path_factory.mktemp("shuffled") / "store", shuffled=True)
