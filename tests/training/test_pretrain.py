"""Phase one: the loss is the paper's, its labels are in order, and training learns."""

import json

import numpy as np
import pytest
import torch
from reference import cross_entropy, embeddings

from epcore.backbones.checkpoint import Checkpoint
from epcore.errors import UserError
from epcore.files import meta_of
from epcore.training import pretrain
from epcore.training.loop import CURVE_COLUMNS

UNFLIPPED = {"augmentation": []}


def turned_by_hand(store, rows):
    """All images upright, then all turned by 90, 180 and 270 degrees: (batch, labels, turns)."""
    base = [n for n, c in enumerate(store.classes) if c.split == "base"]
    images, labels, turns = [], [], []
    for turn in range(4):
        for row in rows:
            images.append(np.rot90(store.images[row], turn))
            labels.append(base.index(store.labels[row]))
            turns.append(turn)
    pixels = np.stack(images).transpose(0, 3, 1, 2) / 127.5 - 1
    return torch.from_numpy(pixels.astype(np.float32)), labels, turns


def linear(head, points):
    weight, bias = (tensor.detach().double().numpy() for tensor in (head.weight, head.bias))
    return points @ weight.T + bias


@pytest.mark.parametrize(
    ("recipe", "bandwidth", "turns_of", "weight"),
    [
        ("epnet", "std", "features", 0.0),
        ("epnet", "std", "features", 0.3),
        ("epnet", "std", "features", 1.0),
        ("net", None, "features", 0.3),
        ("epnet-paper", "std", "embeddings", 0.3),
        ("net-paper", None, "embeddings", 0.3),
        ("epnet-paper-literal", "var", "embeddings", 0.3),
    ],
)
def test_the_loss_is_that_of_classes_and_turns_over_all_rotations_together(
    pretraining, store, recipe, bandwidth, turns_of, weight
):
    task = pretraining(recipe, pretraining={"rotation_weight": weight}, **UNFLIPPED)
    rows = store.image_indices("base")[[3, 90, 41, 117, 77]]
    batch, labels, turns = turned_by_hand(store, rows)
    seen = task.augmenter.pretrain_transform(
        torch.from_numpy(store.images[rows]), torch.Generator(), 4
    )
    torch.testing.assert_close(seen, batch)

    features = task.model.backbone(batch).detach().double().numpy()
    points = {"features": features, "embeddings": features}
    if bandwidth is not None:
        points["embeddings"] = embeddings(features, bandwidth)
    expected = cross_entropy(linear(task.model.class_head, points["embeddings"]), labels)
    of_turns = cross_entropy(linear(task.model.rotation_head, points[turns_of]), turns)
    loss = task.loss(batch, task.labels[rows]).item()
    assert loss == pytest.approx(expected + weight * of_turns, rel=1e-4)


@pytest.mark.parametrize("recipe", ["epnet", "net"])
def test_without_rotated_copies_the_loss_is_of_upright_images_alone(pretraining, store, recipe):
    alone = {"rotated_copies": False, "rotation_weight": 0, "batch_size": 5}
    task = pretraining(recipe, pretraining=alone, **UNFLIPPED)
    seen = []
    task.loss, loss = lambda batch, labels: seen.append((batch, labels)), task.loss
    next(iter(task.losses(0, 0, torch.Generator())))
    (batch, classes), rows = seen[0], store.image_indices("base")
    rows = np.random.default_rng(task.seed(0)).permutation(rows)[:5]
    upright, labels, _ = turned_by_hand(store, rows)
    torch.testing.assert_close(batch, upright[:5])
    assert (task.images_per_step, classes.tolist()) == (5, labels[:5])

    points = task.model.backbone(batch).detach().double().numpy()
    points = embeddings(points, "std") if recipe == "epnet" else points
    expected = cross_entropy(linear(task.model.class_head, points), labels[:5])
    assert loss(batch, classes).item() == pytest.approx(expected, rel=1e-4)


def test_a_rotation_loss_without_rotated_copies_is_refused(pretraining):
    with pytest.raises(ValueError, match="rotation_weight must be 0"):
        pretraining(pretraining={"rotated_copies": False, "rotation_weight": 0.5})


def test_an_epoch_sees_every_base_image_but_the_last_part_batch_once(pretraining, store):
    def recording(batch, labels):
        seen.append((batch, labels))
        return batch.sum()

    seen = []
    task = pretraining(pretraining={"batch_size": 50}, **UNFLIPPED)
    task.loss = recording
    base = store.image_indices("base")
    assert (len(base), task.steps) == (120, 2)
    orders = []
    for epoch in (0, 1):
        seen.clear()
        list(task.losses(epoch, 0, torch.Generator()))
        assert [len(batch) for batch, labels in seen] == [200, 200]
        upright = torch.cat([batch[:50] for batch, labels in seen])
        stored = torch.from_numpy(store.images[base].transpose(0, 3, 1, 2) / 127.5 - 1).float()
        apart = torch.cdist(
            upright.flatten(1), stored.flatten(1), compute_mode="donot_use_mm_for_euclid_dist"
        )
        assert apart.min(dim=1).values.max() < 0.01
        rows = base[apart.argmin(dim=1).numpy()]
        assert len(set(rows)) == 100
        assert torch.equal(torch.cat([labels for batch, labels in seen]), task.labels[rows])
        orders.append(list(rows))
    assert orders[0] != orders[1]


def test_validation_classes_are_base_classes_if_they_are_asked_for(pretraining, store):
    task = pretraining(pretraining={"with_validation": True})
    splits = [store.classes[label].split for label in store.labels]
    trained = [row for row, split in enumerate(splits) if split in ("base", "val")]
    assert list(task.rows) == trained
    seen = {int(store.labels[row]): int(task.labels[row]) for row in trained}
    assert sorted(seen.values()) == list(range(len(seen)))
    assert task.model.class_head.weight.shape[0] == len(seen)
    assert all(task.labels[row] == -1 for row, split in enumerate(splits) if split == "novel")


def test_the_order_of_images_is_that_of_the_seed_and_the_epoch(pretraining):
    def rows(seed, epoch):
        task, seen = pretraining(seed=seed), []
        batch = task.device_images.batch
        task.device_images.batch = lambda asked: seen.append(tuple(asked)) or batch(asked)
        task.loss = lambda images, labels: images.sum()
        list(task.losses(epoch, 0, torch.Generator()))
        return tuple(seen)

    assert rows(0, 0) == rows(0, 0)
    assert len({rows(0, 0), rows(1, 0), rows(0, 1), rows(1, 1)}) == 4


def test_the_gradient_reaches_the_first_convolution_through_embedding_propagation(
    pretraining, store, slope_and_gradient
):
    task = pretraining("epnet", pretraining={"rotation_weight": 0}, **UNFLIPPED)
    rows = store.image_indices("base")[::15]
    batch, _, _ = turned_by_hand(store, rows)
    slope, gradient = slope_and_gradient(task, lambda: task.loss(batch, task.labels[rows]))
    assert gradient > 0.01
    assert slope == pytest.approx(gradient, rel=0.02)


def run(stage_config, toy, out, *arguments, **changes):
    stage = stage_config("pretrain", *arguments, **changes)
    pretrain.run(stage, toy.data, toy.val, out, require_gpu=False)
    facts = json.loads(meta_of(out).read_text(encoding="utf-8"))
    return Checkpoint.load(out, stage.backbone), facts


@pytest.mark.parametrize("recipe", [pytest.param("epnet", marks=pytest.mark.slow), "net"])
def test_training_learns_to_tell_new_classes_apart(
    pretraining, stage_config, toy, tmp_path, recipe
):
    settings = {"epochs": 8, "batch_size": 12}
    before, _ = pretraining(recipe, pretraining=settings).validate()
    assert before < 0.3  # five ways, brightness tells nothing
    _, facts = run(stage_config, toy, tmp_path / "pretrain.pt", recipe, pretraining=settings)
    assert facts["best"]["val_accuracy"] > 0.5


def test_the_stage_leaves_a_checkpoint_a_curve_its_provenance_and_what_it_may_resume_from(
    stage_config, toy, tmp_path
):
    checkpoint, facts = run(stage_config, toy, tmp_path / "pretrain.pt")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"pretrain.pt", "pretrain.csv", "pretrain.meta.json", "pretrain.state"}
    assert checkpoint.class_head["weight"].shape == (6, 8)
    assert facts["resumed_from_epoch"] is None
    header, *lines = (tmp_path / "pretrain.csv").read_text().splitlines()
    assert header.split(",") == list(CURVE_COLUMNS)
    curve = [dict(zip(CURVE_COLUMNS, map(float, line.split(",")), strict=True)) for line in lines]
    assert [row["epoch"] for row in curve] == [0, 1]
    best = max(curve, key=lambda row: (row["val_accuracy"], row["epoch"]))
    assert facts["best"] == pytest.approx(best, rel=1e-4)


def test_the_seed_decides_the_weights(stage_config, toy, tmp_path):
    first, again, other = (
        run(stage_config, toy, tmp_path / name / "pretrain.pt", seed=seed)[0]
        for name, seed in (("first", 3), ("again", 3), ("other", 4))
    )
    assert first.weights.keys() == again.weights.keys()
    for name, tensor in first.weights.items():
        assert torch.equal(tensor, again.weights[name])
    assert not torch.equal(first.weights["blocks.0.0.weight"], other.weights["blocks.0.0.weight"])


def test_fewer_images_than_a_batch_is_told_with_the_setting_to_change(pretraining):
    with pytest.raises(UserError, match=r"120 base images .* pretraining.batch_size to 120 or les"):
        pretraining(pretraining={"batch_size": 121})


def test_a_learning_rate_that_breaks_the_network_is_told_as_such(stage_config, toy, tmp_path):
    with pytest.raises(UserError, match=r"diverged in pretrain 1/2.*lower .* learning_rate"):
        run(stage_config, toy, tmp_path / "pretrain.pt", pretraining={"learning_rate": 1e30})
    assert not (tmp_path / "pretrain.pt").exists()
