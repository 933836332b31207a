"""Stage 1: who is drawn, what is learned, and that a kill costs nothing."""

import json
import zlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from epcore.backbones.checkpoint import Checkpoint
from epcore.backbones.config import BackboneConfig
from epcore.data.config import View
from epcore.errors import UserError
from epcore.imagenet_fs.classes import Subsets
from epcore.imagenet_fs.classifier import ClassifierTask, gradient_penalty, run
from epcore.imagenet_fs.config import ClassifierConfig, ClassifierTraining

CPU = torch.device("cpu")


def stage(**changes):
    training = {
        "epochs": 3, "steps": 4, "batch_size": 24, "learning_rate": 0.1, "drops": [2],
        "momentum": 0.9, "weight_decay": 5e-4, "keep": "last", "scale": 10, "augmentation": [],
    }  # fmt: skip
    return ClassifierConfig(
        stage_version=1,
        backbone=BackboneConfig(architecture="resnet10", width="1/8"),
        view=View(resize=1, crop=1),
        precision="fp32",
        training=ClassifierTraining(**(training | changes)),
        seed=0,
    )


def task(stores, **changes):
    return ClassifierTask(stage(**changes), stores["images"], stores["queries"], CPU)


def test_a_batch_draws_a_base_class_uniformly_then_one_of_its_images(stores):
    drawn = [task(stores, batch_size=3000).sample(0, step) for step in range(2)]
    rows, positions = (np.concatenate(part) for part in zip(*drawn, strict=True))
    store = stores["images"]
    base = Subsets.of(store, "val").base
    assert np.array_equal(store.labels[rows], base[positions])
    counts = np.bincount(positions, minlength=len(base))
    assert stats.chisquare(counts).pvalue > 1e-3
    of_images = np.array(list(Counter(rows.tolist()).values()))
    assert len(of_images) == 12 * len(base)
    assert stats.chisquare(of_images).pvalue > 1e-3
    assert not np.array_equal(drawn[0][0], drawn[1][0])


def test_images_are_those_of_the_seed_the_epoch_and_the_step(stores):
    made = task(stores)

    def rows(seed, epoch, step):
        made.config = stage().model_copy(update={"seed": seed})
        return tuple(made.sample(epoch, step)[0])

    assert rows(0, 0, 0) == rows(0, 0, 0)
    places = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)]
    assert len({rows(*place) for place in places}) == len(places)


def first_step(made, stores):
    """Loss, features, weights of the classes and classes of a task's first batch, in eval mode."""
    made.model.eval()
    rows, classes = made.sample(0, 0)
    loss = next(iter(made.losses(0, 0, torch.Generator()))).item()
    with torch.no_grad():
        images = torch.from_numpy(stores["images"].images[rows])
        features = made.model.backbone(made.augmenter.eval_transform(images)).double().numpy()
        weights = made.model.class_head.weight.double().numpy()
    return loss, features, weights, classes


def test_the_loss_is_the_cross_entropy_of_cosines(stores):
    made = task(stores)
    loss, features, weights, classes = first_step(made, stores)
    assert loss == pytest.approx(cross_entropy(features, weights, 10, classes), rel=1e-5)


def cross_entropy(features, weights, scale, expected):
    """Of cosines, written out in float64."""
    cosines = features @ weights.T
    cosines /= np.linalg.norm(features, axis=1)[:, None] * np.linalg.norm(weights, axis=1)
    powers = np.exp(scale * cosines)
    return -np.log(powers[range(len(expected)), expected] / powers.sum(axis=1)).mean()


def test_the_penalty_is_the_squared_norm_of_the_gradient_by_the_weights():
    rng = np.random.default_rng(0)
    features, weights = rng.normal(size=(6, 5)), rng.normal(size=(4, 5))
    expected = np.array([0, 3, 3, 1, 2, 0])
    gradient = np.zeros((4, 5))
    for x, right in zip(features, expected, strict=True):
        p = np.exp(weights @ x) / np.exp(weights @ x).sum()
        gradient += np.outer(p - (np.arange(4) == right), x) / 6
    x, w = torch.from_numpy(features), torch.from_numpy(weights).requires_grad_()
    y = torch.from_numpy(expected)
    loss = torch.nn.functional.cross_entropy(x @ w.T, y)
    (of_torch,) = torch.autograd.grad(loss, w)
    found = gradient_penalty(x, x @ w.T, y).item()
    assert found == pytest.approx((gradient**2).sum())
    assert found == pytest.approx(of_torch.square().sum().item())


@pytest.mark.parametrize("weight", [0, 5])
def test_the_loss_of_a_linear_classifier_has_the_penalty_with_its_weight(stores, weight):
    made = task(stores, linear=True, gradient_weight=weight)
    loss, features, weights, classes = first_step(made, stores)
    powers = np.exp(features @ weights.T)
    shares = powers / powers.sum(axis=1, keepdims=True)
    errors = shares - np.eye(len(weights))[classes]
    expected = -np.log(shares[range(len(classes)), classes]).mean()
    expected += weight * ((errors.T @ features / len(classes)) ** 2).sum()
    assert loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_the_penalty_changes_the_network_and_makes_the_gradient_smaller(stores, tmp_path):
    """Both heads are linear layers without bias; a weight of 0 is no penalty."""
    folders = [stores[part].directory for part in ("images", "queries")]
    trained = {}
    for weight in (None, 0, 5):
        changes = {} if weight is None else {"gradient_weight": weight}
        out = tmp_path / f"{weight}.pt"
        run(
            stage(linear=True, epochs=4, steps=15, learning_rate=0.01, **changes),
            *folders,
            out,
            False,
        )
        trained[weight] = Checkpoint.load(out, stage().backbone)
        assert {*trained[weight].class_head} == {"weight"}
    heads = {weight: checkpoint.class_head["weight"] for weight, checkpoint in trained.items()}
    assert torch.equal(heads[None], heads[0])
    assert not torch.equal(heads[0], heads[5])
    penalties = {}
    for weight in (0, 5):
        made = task(stores, linear=True, batch_size=200)
        trained[weight].fill(made.model.backbone, made.model.class_head)
        made.model.eval()
        rows, classes = made.sample(0, 0)
        images = made.augmenter.eval_transform(torch.from_numpy(stores["images"].images[rows]))
        with torch.no_grad():
            features = made.model.backbone(images)
            logits = made.model.class_head(features)
        penalties[weight] = gradient_penalty(features, logits, torch.from_numpy(classes)).item()
    assert penalties[5] < 0.5 * penalties[0]


def test_the_penalty_is_of_a_linear_classifier_alone():
    with pytest.raises(ValueError, match="set linear to true"):
        stage(gradient_weight=5)


def test_the_loss_over_rotations_is_of_all_four_and_that_over_classes_of_the_first(stores):
    made = task(stores, rotation_weight=0.7)
    assert made.images_per_step == 4 * 24
    made.model.eval()
    rows, classes = made.sample(0, 0)
    loss = next(iter(made.losses(0, 0, torch.Generator()))).item()
    head = made.model.rotations
    images = stores["images"].images[rows]
    turned = np.concatenate([np.rot90(images, turns, (1, 2)) for turns in range(4)])
    with torch.no_grad():
        maps = made.model.backbone.maps(
            made.augmenter.eval_transform(torch.from_numpy(turned.copy()))
        )
        features = maps.mean(dim=(2, 3)).double().numpy()
        of_rotations = head.blocks(maps).mean(dim=(2, 3)).double().numpy()
        weights = [
            part.weight.double().numpy() for part in (made.model.class_head, head.classifier)
        ]
    turns = np.repeat(np.arange(4), len(rows))
    expected = cross_entropy(features[: len(rows)], weights[0], 10, classes)
    expected += 0.7 * cross_entropy(of_rotations, weights[1], 10, turns)
    assert loss == pytest.approx(expected, rel=1e-5)


def test_rotations_are_learned_and_their_head_is_not_part_of_the_checkpoint(stores, tmp_path):
    """Images are bright above and dark below, and of a class's color."""
    made = task(stores, rotation_weight=1, steps=20)
    ramp = np.linspace(-60, 60, 32)[:, None, None]
    images = (stores["images"].images + ramp).clip(0, 255).astype(np.uint8)
    made.images = replace(stores["images"], images=images, checksums=crc32_of(images))
    optimizer = torch.optim.SGD(made.model.parameters(), lr=0.05, momentum=0.9)
    before = rotation_accuracy(made, images)
    for loss in made.losses(0, 0, torch.Generator()):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert before < 0.6
    assert rotation_accuracy(made, images) > 0.9
    folders = [stores[part].directory for part in ("images", "queries")]
    plain, turned = (tmp_path / f"{name}.pt" for name in ("plain", "turned"))
    run(stage(), *folders, plain, False)
    run(stage(rotation_weight=1), *folders, turned, False)
    one, other = (Checkpoint.load(path, stage().backbone) for path in (plain, turned))
    assert one.weights.keys() == other.weights.keys()
    assert one.class_head.keys() == other.class_head.keys()
    counts = [json.loads(p.with_suffix(".meta.json").read_text()) for p in (plain, turned)]
    assert counts[0]["parameters"] == counts[1]["parameters"]


def crc32_of(images):
    return np.array([zlib.crc32(image) for image in images], dtype=np.uint32)


@torch.no_grad()
def rotation_accuracy(made, images):
    """How often the network in training mode tells by how many quarter turns images are turned."""
    batch = made.augmenter.eval_transform(torch.from_numpy(images[::8]))
    turned = torch.cat([batch.rot90(turns, (2, 3)) for turns in range(4)])
    head = made.model.train().rotations
    scores = head.classifier(head.blocks(made.model.backbone.maps(turned)).mean(dim=(2, 3)))
    turns = torch.arange(4).repeat_interleave(len(batch))
    return (scores.argmax(dim=1) == turns).double().mean().item()


def test_validation_is_the_accuracy_on_queries_of_the_classes_that_validation_scores(stores):
    made = task(stores)
    accuracy, _ = made.validate()
    store = stores["queries"]
    base = store.class_indices("base")
    right = total = 0
    for row, label in enumerate(store.labels):
        if store.classes[label].group == "base_classes_1":
            with torch.no_grad():
                image = torch.from_numpy(np.array(store.images[row : row + 1]))
                logits = made.model.class_head(
                    made.model.backbone(made.augmenter.eval_transform(image))
                )
            right += base[logits.argmax().item()] == label
            total += 1
    assert accuracy == pytest.approx(right / total)


def test_training_learns_the_colors_and_a_kill_changes_nothing(stores, tmp_path, monkeypatch):
    folders = [stores[part].directory for part in ("images", "queries")]
    longer = stage(epochs=6, steps=15, drops=[4])
    run(longer, *folders, tmp_path / "whole" / "classifier.pt", False)
    curve = (tmp_path / "whole" / "classifier.csv").read_text().splitlines()
    rates = [float(line.split(",")[1]) for line in curve[1:]]
    assert rates == pytest.approx([0.1] * 4 + [0.01] * 2)
    assert float(curve[-1].split(",")[3]) > 0.5  # 26 classes

    validate, seen = ClassifierTask.validate, []

    def dying(self):
        seen.append(None)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return validate(self)

    out = tmp_path / "killed" / "classifier.pt"
    monkeypatch.setattr(ClassifierTask, "validate", dying)
    with pytest.raises(KeyboardInterrupt):
        run(longer, *folders, out, False)
    run(longer, *folders, out, False)
    assert len(seen) == 4 + 3
    whole = Checkpoint.load(tmp_path / "whole" / "classifier.pt", longer.backbone)
    killed = Checkpoint.load(out, longer.backbone)
    for one, other in ((whole.weights, killed.weights), (whole.class_head, killed.class_head)):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    (state,) = (out.parent / "classifier.state").iterdir()
    assert state.suffix == ".pt"


def test_the_last_epoch_is_kept_where_the_settings_say_so(stores, tmp_path, monkeypatch):
    """The first epoch is made to look best."""
    accuracies = iter([0.9, 0.1, 0.1, 0.9, 0.1, 0.1])
    kept = {}
    for keep in ("last", "best"):
        states = []
        monkeypatch.setattr(
            ClassifierTask,
            "validate",
            lambda self, states=states: (
                states.append(self.model.class_head.weight.detach().clone())
                or (next(accuracies), 1.0)
            ),
        )
        out = tmp_path / keep / "classifier.pt"
        chosen = stage(keep=keep)
        run(chosen, *(stores[part].directory for part in ("images", "queries")), out, False)
        weight = Checkpoint.load(out, chosen.backbone).class_head["weight"]
        kept[keep] = [torch.equal(weight, state) for state in states]
    assert kept == {"last": [False, False, True], "best": [True, False, False]}


def test_images_that_leave_the_last_stage_one_position_are_refused(stores):
    small = stage().model_copy(update={"view": View(resize=1, crop="1/2")})
    with pytest.raises(UserError, match="a view of 16 pixels is too small for resnet10"):
        ClassifierTask(small, stores["images"], stores["queries"], CPU)


def test_stores_that_do_not_belong_together_are_told_before_training(stores, toy, tmp_path):
    with pytest.raises(UserError, match="has 46 classes, toy 16"):
        run(stage(), stores["images"].directory, toy.data, tmp_path / "classifier.pt", False)
