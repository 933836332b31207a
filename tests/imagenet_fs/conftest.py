"""A benchmark in miniature: two stores of the same classes, and features as stage 1 leaves them."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from packing import pack

from epcore.backbones.checkpoint import Checkpoint, build, state_of
from epcore.backbones.config import BackboneConfig
from epcore.backbones.cosine import CosineClassifier
from epcore.data.contents import ImageClass
from epcore.imagenet_fs.features import ImageFeatures

SUBSETS = {"base_classes_1": 14, "base_classes_2": 12, "novel_classes_1": 9, "novel_classes_2": 11}
SPLITS = {"novel_classes_1": "val", "novel_classes_2": "novel"}
PER_CLASS = {"images": 12, "queries": 5}
SIZE = 16  # of features
BACKBONE = BackboneConfig(architecture="resnet10", width=Fraction(1, 32))


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """Equal to the last bit, also on a machine with a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def classes():
    """Subsets mixed, so that no label is a position among the base classes."""
    groups = np.repeat(list(SUBSETS), list(SUBSETS.values()))
    np.random.default_rng(3).shuffle(groups)
    return [
        ImageClass(f"n{number:04d}", SPLITS.get(group, "base"), str(group))
        for number, group in enumerate(groups)
    ]


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """Folders of the images and the queries: flat colors of their class, with noise."""
    folder = tmp_path_factory.mktemp("imagenet-fs")
    colors = np.random.default_rng(5).uniform(40, 215, (len(classes()), 1, 1, 3))
    found = {}
    for part, count in PER_CLASS.items():
        labels = np.repeat(np.arange(len(classes())), count)
        noise = np.random.default_rng(count).normal(0, 20, (len(labels), 32, 32, 3))
        images = (colors[labels] + noise).clip(0, 255).astype(np.uint8)
        found[part] = pack(folder / part, classes(), labels, images, 32)
    return found


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """A stage 1 that was never trained."""
    torch.manual_seed(2)
    backbone = build(BACKBONE)
    head = CosineClassifier(SIZE, SUBSETS["base_classes_1"] + SUBSETS["base_classes_2"], 10)
    path = tmp_path_factory.mktemp("stage1") / "classifier.pt"
    Checkpoint(BACKBONE, state_of(backbone), state_of(head)).save(path)
    return path


@pytest.fixture(scope="session")
def features(tmp_path_factory, stores):
    """A folder with features of both parts: each class a direction, with noise."""
    folder = tmp_path_factory.mktemp("features")
    directions = np.random.default_rng(7).normal(size=(len(classes()), SIZE))
    for part, store in stores.items():
        rng = np.random.default_rng(len(store.labels))
        values = directions[store.labels] + rng.normal(0, 0.8, (len(store.labels), SIZE))
        np.save(folder / f"{part}.npy", values.astype(np.float32))
    return folder


@pytest.fixture
def opened(stores, features):
    """Both parts as stage 2 reads them."""
    return {
        part: ImageFeatures.open(store.directory, features / f"{part}.npy")
        for part, store in stores.items()
    }
