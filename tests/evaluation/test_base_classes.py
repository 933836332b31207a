"""The base mean and the base weights of a checkpoint, against what they are of."""

import json
from fractions import Fraction

import numpy as np
import pytest
import torch

from epcore.backbones.checkpoint import Checkpoint, build, state_of
from epcore.backbones.config import BackboneConfig
from epcore.backbones.cosine import CosineClassifier
from epcore.data.augment import Augmenter
from epcore.data.config import View
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.evaluation import base_classes
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.config import BaseClassesConfig
from epcore.evaluation.embed import embed

BACKBONE = BackboneConfig(architecture="conv4", width=Fraction(1, 8))
STAGE = BaseClassesConfig(backbone=BACKBONE, view=View(resize=1, crop=1), precision="fp32")


@pytest.fixture
def checkpoint(tmp_path):
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 6)
    network = build(BACKBONE)
    Checkpoint(BACKBONE, state_of(network), state_of(head)).save(tmp_path / "c.pt")
    return network, head


def test_the_mean_is_of_all_base_images_and_weights_are_the_heads(toy, tmp_path, checkpoint):
    network, head = checkpoint
    base_classes.run(STAGE, toy.data, tmp_path / "c.pt", tmp_path / "base.npz")
    found, store = BaseClasses.load(tmp_path / "base.npz"), ImageStore.open(toy.data)
    base = [row for row, label in enumerate(store.labels) if store.classes[label].split == "base"]
    augmenter, cpu = Augmenter((), STAGE.view), torch.device("cpu")
    features = [
        embed(network, store, np.array([row]), augmenter, cpu, "fp32").values[0] for row in base
    ]
    assert len(base) == 6 * 20
    np.testing.assert_allclose(found.mean, np.mean(features, axis=0), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found.weights, head.weight.detach().numpy())
    meta = json.loads((tmp_path / "base.meta.json").read_text(encoding="utf-8"))
    assert meta["images"] == len(base)


def test_without_a_class_head_there_are_no_weights(toy, tmp_path):
    Checkpoint(BACKBONE, state_of(build(BACKBONE))).save(tmp_path / "c.pt")
    base_classes.run(STAGE, toy.data, tmp_path / "c.pt", tmp_path / "base.npz")
    found = BaseClasses.load(tmp_path / "base.npz")
    assert found.weights.shape == (0, 8)
    assert found.tensors[1] is None


def test_weights_of_a_cosine_layer_are_left_out(toy, tmp_path):
    """Their lengths mean nothing."""
    head = CosineClassifier(8, 6, scale=10)
    Checkpoint(BACKBONE, state_of(build(BACKBONE)), state_of(head)).save(tmp_path / "c.pt")
    base_classes.run(STAGE, toy.data, tmp_path / "c.pt", tmp_path / "base.npz")
    assert BaseClasses.load(tmp_path / "base.npz").weights.shape == (0, 8)


@pytest.mark.parametrize(("mean", "weights"), [((3,), (4, 2)), ((3, 1), (4, 3)), ((2,), (2,))])
def test_arrays_that_do_not_fit_are_a_damaged_file(tmp_path, mean, weights):
    np.savez(tmp_path / "base.npz", mean=np.zeros(mean), weights=np.zeros(weights))
    with pytest.raises(UserError, match=r"file of base classes .* is damaged"):
        BaseClasses.load(tmp_path / "base.npz")
