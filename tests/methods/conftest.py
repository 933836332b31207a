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


def _store(folder, shuffled=False, contrast=107.5, brightness=0):
    random = np.random.default_rng(0)
    classes = [ImageClass(f"class {number:02}", split) for number, split in enumerate(SPLITS)]
    labels = np.repeat(np.arange(len(SPLITS)), IMAGES)
    # Each class has a color in its upper and one in its lower half.
    colors = 127.5 + random.uniform(-contrast, contrast, (len(SPLITS), 2, 3))
    shown = random.permutation(labels) if shuffled else labels
    images = np.repeat(colors[shown], PIXELS // 2, axis=1)[:, :, None]
    images = images + random.normal(0, 12, (len(labels), PIXELS, PIXELS, 3))
    images += random.uniform(-brightness, brightness, (len(labels), 1, 1, 1))
    return pack(folder, classes, labels, images.clip(0, 255).astype(np.uint8), PIXELS)


@pytest.fixture(scope="session")
def colors(tmp_path_factory):
    """40 classes of 12 images of 28x28 pixels, easy to tell apart."""
    return _store(tmp_path_factory.mktemp("colors") / "store")


@pytest.fixture(scope="session")
def dimmed(tmp_path_factory):
    """Such classes, whose images differ far more in brightness: an untrained network sees that."""
    return _store(tmp_path_factory.mktemp("dimmed") / "store", contrast=45, brightness=75)


@pytest.fixture(scope="session")
def shuffled(tmp_path_factory):
    """The same pictures, whose classes mean nothing."""
    return _store(tmp_path_factory.mktemp("shuffled") / "store", shuffled=True)
