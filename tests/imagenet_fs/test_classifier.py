"""Stage 1: who is drawn, what is learned, and that a kill costs nothing."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats

from epcore.backbones.checkpoint import Checkpoint
from epcore.backbones.config import BackboneConfig
from epcore.data.config import View
from epcore.errors import UserError
from epcore.imagenet_fs.classes import Subsets
from epcore.imagenet_fs.classifier import ClassifierTask, run
from epcore.imagenet_fs.config import ClassifierConfig, ClassifierTraining

CPU = torch.device("cpu")


def stage(**changes):
    training = {
        "epochs": 3, "steps": 4, "batch_size": 24, "learning_rate": 0.1, "drops": [2],
        "momentum": 0.9, "weight_decay": 5e-4, "keep": "last", "scale": 10, "augmentation": [],
    }  # fmt: skip
    return ClassifierConfig(
        stage_version=1,
        backbone=BackboneConfig(architecture="resnet10", width="1/16"),
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


def test_the_loss_is_the_cross_entropy_of_cosines(stores):
    made = task(stores)
    made.model.eval()
    rows, classes = made.sample(0, 0)
    loss = next(iter(made.losses(0, 0, torch.Generator()))).item()
    with torch.no_grad():
        images = torch.from_numpy(stores["images"].images[rows])
        features = made.model.backbone(made.augmenter.eval_transform(images)).double().numpy()
        weights = made.model.class_head.weight.double().numpy()
    cosines = features @ weights.T
    cosines /= np.linalg.norm(features, axis=1)[:, None] * np.linalg.norm(weights, axis=1)
    powers = np.exp(10 * cosines)
    expected = -np.log(powers[range(len(rows)), classes] / powers.sum(axis=1)).mean()
    assert loss == pytest.approx(expected, rel=1e-5)


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
