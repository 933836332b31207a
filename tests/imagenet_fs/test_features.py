"""Features of all images: the network's, and resumable."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from epcore.backbones.checkpoint import load_backbone
from epcore.data.augment import Augmenter
from epcore.data.config import View
from epcore.imagenet_fs import features as module
from epcore.imagenet_fs.config import ImageFeaturesConfig
from epcore.imagenet_fs.features import ImageFeatures, open_both, run, write_features


@pytest.fixture
def stage(checkpoint):
    backbone = torch.load(checkpoint, weights_only=True)["backbone"]
    return ImageFeaturesConfig(
        stage_version=1, backbone=backbone, view=View(resize=1, crop=1), precision="fp32"
    )


@pytest.fixture
def data(stores):
    return stores["images"].directory


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """The 552 images are six chunks."""
    monkeypatch.setattr(module, "CHUNK", 100)
    monkeypatch.setattr(module, "BATCH", 32)


def test_features_are_the_networks_for_every_image_in_order(stage, data, checkpoint, tmp_path):
    write_features(stage, {tmp_path / "images.npy": data}, checkpoint)
    found = ImageFeatures.open(data, tmp_path / "images.npy")
    backbone = load_backbone(checkpoint, stage.backbone, torch.device("cpu"))
    with torch.no_grad():
        images = torch.from_numpy(np.array(found.store.images))
        expected = backbone(Augmenter((), stage.view).eval_transform(images))
    assert found.values.shape == expected.shape
    assert np.allclose(found.values, expected.numpy(), atol=1e-5)
    rows = np.array([[7, 500], [3, 7]])
    assert torch.equal(found.of(rows), torch.from_numpy(np.array(found.values[rows])))
    assert isinstance(found.values, np.memmap)


def test_the_stage_writes_the_features_of_both_data_sets(stage, stores, checkpoint, tmp_path):
    folders = [stores[part].directory for part in ("images", "queries")]
    run(stage, *folders, checkpoint, tmp_path)
    images, queries = open_both(*folders, tmp_path)
    assert (len(images.values), len(queries.values)) == (552, 230)
    assert np.abs(queries.values).max() > 0
    assert {path.name for path in tmp_path.iterdir()} == {
        *("images.npy", "images.meta.json", "queries.npy", "queries.meta.json")
    }


@pytest.fixture
def watched(monkeypatch):
    """Batches of images that went through the network; above `limit` images the process dies."""
    plain, seen = Augmenter.eval_transform, SimpleNamespace(batches=[], limit=math.inf)

    def counting(self, images):
        seen.batches.append(len(images))
        if sum(seen.batches) > seen.limit:
            raise KeyboardInterrupt
        return plain(self, images)

    monkeypatch.setattr(Augmenter, "eval_transform", counting)
    return seen


def test_what_is_computed_of_the_one_survives_a_failure_of_the_other(
    stage, stores, checkpoint, tmp_path, watched
):
    folders = [stores[part].directory for part in ("images", "queries")]
    watched.limit = 600
    with pytest.raises(KeyboardInterrupt):
        run(stage, *folders, checkpoint, tmp_path)
    assert not list(tmp_path.glob("*.npy"))
    watched.limit, watched.batches = math.inf, []
    run(stage, *folders, checkpoint, tmp_path)
    assert sum(watched.batches) == 230
    assert sorted(path.name for path in tmp_path.glob("*.npy")) == ["images.npy", "queries.npy"]


def test_a_killed_run_goes_on_where_it_was_and_ends_with_the_same_bytes(
    stage, data, checkpoint, tmp_path, watched
):
    write_features(stage, {tmp_path / "whole" / "images.npy": data}, checkpoint)
    out, watched.batches, watched.limit = tmp_path / "killed" / "images.npy", [], 350
    with pytest.raises(KeyboardInterrupt):
        write_features(stage, {out: data}, checkpoint)
    assert not out.exists()
    watched.limit, watched.batches = math.inf, []
    write_features(stage, {out: data}, checkpoint)
    assert len(watched.batches) == 4 + 4 + 2  # of 252 images that were left
    assert out.read_bytes() == (tmp_path / "whole" / "images.npy").read_bytes()
    facts = json.loads(out.with_suffix(".meta.json").read_text())
    assert facts["resumed_from_image"] == 300
    assert sorted(path.name for path in out.parent.iterdir()) == ["images.meta.json", "images.npy"]
