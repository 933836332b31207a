"""Features: of an image alone, found again by its row, and never of a damaged file."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from epcore.backbones.checkpoint import Checkpoint, build, state_of
from epcore.backbones.config import BackboneConfig
from epcore.data.augment import Augmenter
from epcore.data.config import View
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.evaluation import embed as embedding
from epcore.evaluation.embed import Features, embed

CPU = torch.device("cpu")
PLAIN = Augmenter((), View(resize=1, crop=1))


@pytest.fixture(scope="module")
def store(toy):
    return ImageStore.open(toy.data)


@pytest.fixture(scope="module")
def backbone(store):
    """Untrained, with running statistics that suit the images."""
    torch.manual_seed(0)
    backbone = build(BackboneConfig(architecture="conv4", width=Fraction(1, 8)))
    for _ in range(50):
        backbone(PLAIN.eval_transform(torch.from_numpy(store.images[np.arange(0, 320, 4)])))
    return backbone


def test_a_feature_does_not_depend_on_what_else_is_embedded(store, backbone):
    """More images than one batch has, against each image by itself."""
    everything = embed(backbone, store, np.arange(len(store.labels)), PLAIN, CPU, "fp32")
    assert everything.values.shape == (320, 8)
    assert np.ptp(everything.values, axis=0).min() > 1e-3
    for row in (0, 1, 255, 256, 257, 319):
        alone = embed(backbone, store, np.array([row]), PLAIN, CPU, "fp32")
        np.testing.assert_allclose(alone.values[0], everything.values[row], rtol=1e-4, atol=1e-6)


def test_the_same_image_has_the_same_feature_in_any_set(store, backbone):
    some, others = np.array([3, 50, 200, 301]), np.array([0, 50, 51, 301])
    one = embed(backbone, store, some, PLAIN, CPU, "fp32").of(np.array([50, 301]))
    other = embed(backbone, store, others, PLAIN, CPU, "fp32").of(np.array([50, 301]))
    torch.testing.assert_close(one, other)


def test_embedding_leaves_the_network_as_it_is_even_if_it_was_training(store, backbone):
    backbone.train()
    before = state_of(backbone)
    embed(backbone, store, np.arange(20), PLAIN, CPU, "fp32")
    after = state_of(backbone)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not backbone.training


def test_features_are_found_by_row_in_any_shape_and_order():
    values = np.array([[2.0, 0], [5, 0], [7, 0]], np.float32)
    features = Features(np.array([2, 5, 7]), np.zeros(3, np.int64), values)
    rows = np.array([[7, 2], [5, 7]])
    assert features.of(rows)[..., 0].tolist() == rows.tolist()


@pytest.mark.parametrize("row", [0, 3, 8])
def test_a_row_that_was_not_embedded_is_told(row):
    features = Features(np.array([2, 5, 7]), np.zeros(3, np.int64), np.zeros((3, 2), np.float32))
    with pytest.raises(ValueError, match="no features of some"):
        features.of(np.array([2, row]))


def frozen(path, support, query):
    """One episode of two classes."""
    none = np.empty((1, 2, 0), np.int64)
    Episodes(np.array([support]), np.array([query]), none).save(path)
    return path


def test_episodes_are_of_the_images_and_classes_of_the_features(tmp_path):
    rows, labels = np.array([2, 3, 5, 7, 8]), np.array([0, 0, 0, 4, 4])
    features, source = Features(rows, labels, np.ones((5, 2), np.float32)), Path("f.npz")
    taken = features.episodes(frozen(tmp_path / "e.npz", [[2], [7]], [[5], [8]]), source)
    assert taken.images().tolist() == [[2, 7, 5, 8]]
    for support, query in (
        ([[2], [7]], [[4], [8]]),  # 4 was not embedded
        ([[4], [7]], [[4 + 2], [8]]),  # a whole class was not
        ([[2], [7]], [[5], [9]]),  # 9 is beyond the last
        ([[2], [7]], [[8], [5]]),  # queries of the other class
        ([[2], [3]], [[5], [5 + 2]]),  # one class twice
    ):
        path = frozen(tmp_path / "e.npz", support, query)
        with pytest.raises(UserError, match=r"e\.npz was drawn from another data set than f\.npz"):
            features.episodes(path, source)


def test_rows_of_a_foreign_file_take_no_memory(tmp_path):
    rows = np.array([2, 5, 2**62])
    features = Features(rows, np.array([0, 0, 1]), np.ones((3, 2), np.float32))
    path = frozen(tmp_path / "e.npz", [[2], [7]], [[5], [8]])
    with pytest.raises(UserError, match="was drawn from another data set"):
        features.episodes(path, Path("f.npz"))


def test_features_come_back_as_they_were_saved(tmp_path):
    values = np.array([[0.1, 1e-9], [3, 4]], np.float32)
    features = Features(np.array([1, 4]), np.array([0, 3]), values)
    features.save(tmp_path / "features.npz")
    loaded = Features.load(tmp_path / "features.npz")
    assert np.array_equal(loaded.rows, features.rows)
    assert np.array_equal(loaded.labels, features.labels)
    assert np.array_equal(loaded.values, features.values)
    assert loaded.values.dtype == np.float32


def test_a_file_of_other_arrays_is_no_feature_file(tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, rows=np.zeros(3))
    with pytest.raises(UserError, match=r"no feature file, .*: labels, values missing"):
        Features.load(path)


def test_a_missing_feature_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"^feature file .*none\.npz does not exist; make it"):
        Features.load(tmp_path / "none.npz")


def test_the_stage_embeds_all_images_of_validation_and_test_classes(
    stage_config, toy, store, backbone, tmp_path
):
    stage = stage_config("embed")
    checkpoint, out = tmp_path / "finetune-1shot.pt", tmp_path / "features.npz"
    head = torch.nn.Linear(8, 6)
    Checkpoint(stage.backbone, state_of(backbone), state_of(head)).save(checkpoint)
    embedding.run(stage, Path(toy.data), checkpoint, out)
    features = Features.load(out)
    splits = np.array([each.split for each in store.classes])[store.labels]
    assert set(splits) == {"base", "val", "novel"}
    assert features.rows.tolist() == np.flatnonzero(splits != "base").tolist()
    assert features.labels.tolist() == store.labels[features.rows].tolist()
    backbone.eval()
    with torch.no_grad():
        pixels = torch.from_numpy(store.images[features.rows]).permute(0, 3, 1, 2) / 127.5 - 1
        expected = backbone(pixels).numpy()
    np.testing.assert_allclose(features.values, expected, rtol=1e-3, atol=1e-5)
