"""The loop: when the rate falls, when it stops, what it keeps, and that a kill costs nothing."""

import math
import os
import signal

import numpy as np
import pytest
import torch
from reference import cross_entropy, embeddings, label_scores

from epcore.backbones.checkpoint import build, save_atomically
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.propagation import DegenerateFeaturesError
from epcore.runtime.interruption import Interrupted
from epcore.training import loop
from epcore.training.finetune import FinetuningTask
from epcore.training.loop import fit, seed_of
from epcore.training.optimization import Optimization
from epcore.training.pretrain import PretrainingTask
from epcore.training.session import Session, Validator


class Scripted:
    """One weight, pulled towards 0; the validation results are given."""

    steps, images_per_step = 2, 1

    def __init__(self, accuracies, losses=None, trouble=()):
        self.model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(self.model.weight)
        losses = losses or [1.0] * len(accuracies)
        self.script = iter(zip(accuracies, losses, strict=True))
        self.trouble = dict(trouble)
        self.after = []

    def seed(self, epoch):
        return epoch

    def losses(self, epoch, start, generator):
        for step in range(start, self.steps):
            yield self.model.weight.sum() * self.trouble.get((epoch, step), 1)

    def validate(self):
        self.after.append(self.model.weight.item())
        return next(self.script)


def settings(epochs, metric="accuracy", patience=100, learning_rate=0.1, **more):
    plateau = {"metric": metric, "patience": patience, "factor": 0.1}
    given = {"momentum": 0, "weight_decay": 0, "schedule": "plateau", "stop_ratio": 1e-4} | more
    return Optimization(epochs=epochs, learning_rate=learning_rate, plateau=plateau, **given)


def train(task, optimization, folder):
    return fit(task, optimization, 0, folder / "state.pt", "toy")


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
def test_the_rate_falls_after_patience_and_one_more_epochs_without_a_gain(tmp_path, metric):
    """The other quantity gains in every epoch and must not matter."""
    flat, better, lower = [0.5] * 8, [n / 10 for n in range(8)], [1 - n / 10 for n in range(8)]
    task = Scripted(flat, lower) if metric == "accuracy" else Scripted(better, flat)
    outcome = train(task, settings(8, metric, patience=2), tmp_path)
    rates = [row["learning_rate"] for row in outcome.curve]
    assert rates == pytest.approx([0.1] * 4 + [0.01] * 3 + [0.001])


@pytest.mark.parametrize("metric", ["accuracy", "loss"])
def test_the_rate_stays_while_the_metric_gains(tmp_path, metric):
    """The other quantity gets worse in every epoch and must not matter."""
    up, down = [n / 10 for n in range(1, 7)], [1 - n / 10 for n in range(6)]
    task = Scripted(up, up) if metric == "accuracy" else Scripted(down, down)
    outcome = train(task, settings(6, metric, patience=0), tmp_path)
    assert [row["learning_rate"] for row in outcome.curve] == [0.1] * 6


@pytest.mark.parametrize(("learning_rate", "drops"), [(0.2, 5), (0.1, 5), (0.01, 4), (0.001, 5)])
def test_training_stops_once_the_rate_fell_to_the_stop_ratio(tmp_path, learning_rate, drops):
    """PAPER_VS_CODE A34, the rounding of floating-point numbers included."""
    task = Scripted([0.5] * 20)
    optimization = settings(20, patience=0, learning_rate=learning_rate)
    curve = train(task, optimization, tmp_path).curve
    rates = [row["learning_rate"] for row in curve[1:]]  # the first epoch is always a gain
    assert rates == pytest.approx([learning_rate * 0.1**n for n in range(drops)])


def test_the_weights_of_the_best_epoch_are_kept_the_later_of_equals(tmp_path):
    task = Scripted([0.2, 0.6, 0.6, 0.4], losses=[1, 2, 3, 0])
    outcome = train(task, settings(4), tmp_path)
    assert outcome.best["epoch"] == 2
    assert outcome.weights["weight"].item() == task.after[2]
    assert len(set(task.after)) == 4


def test_the_curve_holds_the_mean_loss_and_the_validation_of_each_epoch(tmp_path):
    task = Scripted([0.2, 0.3], losses=[4, 5])
    outcome = train(task, settings(2), tmp_path)
    # The gradient is 1, so each step of rate 0.1 takes 0.1 off the weight, which is the loss.
    assert [row["train_loss"] for row in outcome.curve] == pytest.approx([0.95, 0.75])
    assert [row["val_accuracy"] for row in outcome.curve] == [0.2, 0.3]
    assert [row["val_loss"] for row in outcome.curve] == [4, 5]


def test_steps_are_nesterovs_with_weight_decay_on_every_weight(tmp_path):
    task = Scripted([0.5])
    train(task, settings(1, momentum=0.9, weight_decay=0.5), tmp_path)
    weight, velocity = 1.0, 0.0
    for _ in range(task.steps):
        gradient = 1 + 0.5 * weight
        velocity = 0.9 * velocity + gradient
        weight -= 0.1 * (gradient + 0.9 * velocity)
    assert task.after == pytest.approx([weight])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_training_naming_epoch_and_step(tmp_path, value):
    task = Scripted([0.5] * 3, trouble={(1, 1): value})
    with pytest.raises(UserError) as caught:
        train(task, settings(3), tmp_path)
    assert f"toy 2/3, step 2: the loss is {value} (the last loss was 0.8)" in str(caught.value)
    assert "lower the recipe's learning_rate" in str(caught.value)
    assert epochs_in(tmp_path / "state.pt") == 1


def epochs_in(state):
    return len(torch.load(state, weights_only=True)["curve"])


@pytest.mark.parametrize("save_every", [0, 600])
def test_weights_that_are_no_numbers_are_not_saved(tmp_path, monkeypatch, save_every):
    """A loss that is a number may have a gradient that is none."""

    class Steep(Scripted):
        def losses(self, epoch, start, generator):
            for step, loss in enumerate(super().losses(epoch, start, generator), start):
                yield (loss * 0).sqrt() if (epoch, step) == (1, 1) else loss

    monkeypatch.setattr(loop, "SAVE_EVERY", save_every)
    with pytest.raises(UserError, match=r"toy 2/3, step 2: weights are no longer finite"):
        train(Steep([0.5] * 3), settings(3), tmp_path)
    assert epochs_in(tmp_path / "state.pt") == 1


def test_features_that_are_no_numbers_end_training_the_same_way(tmp_path):
    class Degenerate(Scripted):
        def losses(self, epoch, start, generator):
            for step, loss in enumerate(super().losses(epoch, start, generator), start):
                if (epoch, step) == (1, 1):
                    raise DegenerateFeaturesError("features hold 3 NaN")
                yield loss

    with pytest.raises(UserError) as caught:
        train(Degenerate([0.5] * 3), settings(3), tmp_path)
    assert "toy 2/3, step 2: features hold 3 NaN (the last loss was 0.8)" in str(caught.value)
    assert "lower the recipe's learning_rate" in str(caught.value)
    assert epochs_in(tmp_path / "state.pt") == 1


# -- killed and resumed ----------------------------------------------------------------------------

KILLED_AT = (2, 1)


def killed(kind):
    class Killed(kind):
        """Dies in the middle of an epoch."""

        def losses(self, epoch, start, generator):
            for step, loss in enumerate(super().losses(epoch, start, generator), start):
                if (epoch, step) == KILLED_AT:
                    raise KeyboardInterrupt
                yield loss

    return Killed


def told_to_leave(kind):
    class ToldToLeave(kind):
        """Hears of it while it validates its second epoch, and never comes to its end."""

        validations = 0

        def validate(self):
            found = super().validate()
            self.validations += 1
            if self.validations == KILLED_AT[0]:
                os.kill(os.getpid(), signal.SIGTERM)
                raise AssertionError("the signal waited for the end of the validation")
            return found

    return ToldToLeave


@pytest.mark.parametrize(
    ("phase", "backbone", "stopped", "finished"),
    [
        pytest.param("pretraining", "resnet12", killed, KILLED_AT[0], marks=pytest.mark.slow),
        pytest.param("pretraining", "wrn", told_to_leave, KILLED_AT[0] - 1, marks=pytest.mark.slow),
        ("finetuning", "resnet12", told_to_leave, KILLED_AT[0] - 1),
        pytest.param("finetuning", "wrn", killed, KILLED_AT[0], marks=pytest.mark.slow),
    ],
)
def test_a_stopped_training_goes_on_and_ends_as_if_nothing_had_happened(
    request, tmp_path, phase, backbone, stopped, finished
):
    """With dropout, flips and momentum."""
    task_of = request.getfixturevalue(phase)
    kind = {"pretraining": PretrainingTask, "finetuning": FinetuningTask}[phase]
    changes = {
        "augmentation": ["flip"],
        phase: {
            "epochs": 4,
            "stop_ratio": 0,
            "learning_rate": 0.01,
            "plateau": {"metric": "accuracy", "patience": 0, "factor": 0.5},
        },
    }
    # Deep networks need some steps before the running statistics of BatchNorm tell images apart.
    changes[phase] |= {"batch_size": 6} if phase == "pretraining" else {"episodes_per_epoch": 20}

    def start(kind, state):
        task = task_of("epnet", backbone, kind=kind, **changes)
        optimization = getattr(task.config, phase)
        return fit(task, optimization, task.config.seed, state, phase)

    whole = start(kind, tmp_path / "whole.pt")
    with pytest.raises(KeyboardInterrupt):
        start(stopped(kind), tmp_path / "killed.pt")
    torch.manual_seed(99)  # another process has other random numbers
    resumed = start(kind, tmp_path / "killed.pt")
    assert (whole.resumed_from, resumed.resumed_from) == (None, finished)
    assert resumed.curve == whole.curve
    assert resumed.best == whole.best
    for name, tensor in whole.weights.items():
        assert torch.equal(tensor, resumed.weights[name]), name
    last = [
        torch.load(tmp_path / f"{name}.pt", weights_only=True)["model"]
        for name in ("whole", "killed")
    ]
    for name, tensor in last[0].items():
        assert torch.equal(tensor, last[1][name]), name


def test_a_resumed_training_knows_its_best_epoch_and_how_long_nothing_was_gained(tmp_path):
    optimization = settings(5, patience=1, momentum=0.9)
    task = Scripted([0.9, 0.5, 0.5, 0.5, 0.5])
    whole = fit(task, optimization, 0, tmp_path / "whole.pt", "toy")
    with pytest.raises(KeyboardInterrupt):
        fit(killed(Scripted)([0.9, 0.5]), optimization, 0, tmp_path / "killed.pt", "toy")
    resumed = fit(Scripted([0.5] * 3), optimization, 0, tmp_path / "killed.pt", "toy")
    assert [row["learning_rate"] for row in whole.curve] == pytest.approx([0.1] * 3 + [0.01] * 2)
    assert resumed.curve == whole.curve
    assert resumed.best == whole.best == whole.curve[0]
    assert torch.equal(resumed.weights["weight"], whole.weights["weight"])


def test_a_signal_before_the_validation_does_not_wait_for_it_either(tmp_path, monkeypatch):
    """It comes after the last step has looked."""
    task = Scripted([0.5])
    monkeypatch.setattr(
        loop._Training, "_check_weights", lambda self: os.kill(os.getpid(), signal.SIGTERM)
    )
    with pytest.raises(Interrupted) as caught:
        train(task, settings(1), tmp_path)
    assert caught.value.number == signal.SIGTERM
    assert task.after == []
    assert epochs_in(tmp_path / "state.pt") == 0


def test_training_that_was_killed_after_its_last_epoch_trains_no_more(tmp_path):
    whole = train(Scripted([0.2, 0.6]), settings(2), tmp_path)
    again = train(Scripted([]), settings(2), tmp_path)
    assert (again.curve, again.best) == (whole.curve, whole.best)
    assert torch.equal(again.weights["weight"], whole.weights["weight"])


def test_a_damaged_state_file_is_named(tmp_path):
    (tmp_path / "state.pt").write_bytes(b"half a file")
    with pytest.raises(UserError, match=r"state\.pt is damaged .* delete it and run"):
        train(Scripted([0.5]), settings(1), tmp_path)


@pytest.mark.parametrize("content", [[1, 2], {}])
def test_what_is_no_state_is_named(tmp_path, content):
    torch.save(content, tmp_path / "state.pt")
    with pytest.raises(UserError, match=r"state\.pt is (damaged|of another version).* delete it"):
        train(Scripted([0.5]), settings(1), tmp_path)


def test_the_state_file_is_named_by_config_and_inputs(stage_config, toy, tmp_path):
    def state(stage, episodes=toy.val):
        inputs = [toy.data / "store.json", episodes]
        return Session("pretrain", stage, inputs, tmp_path / "pretrain.pt").state()

    first = state(stage_config("pretrain"))
    assert first == state(stage_config("pretrain"))
    others = [
        state(stage_config("pretrain", pretraining={"epochs": 3})),
        state(stage_config("pretrain", seed=1)),
        state(stage_config("pretrain", "net")),
        state(stage_config("pretrain"), toy.novel),
    ]
    assert len({first, *others}) == 5


def test_a_state_of_another_config_is_not_used(stage_config, toy, pretraining, tmp_path):
    out = tmp_path / "pretrain.pt"
    stage = stage_config("pretrain", pretraining={"weight_decay": 0.1})
    inputs = [toy.data / "store.json", toy.val]
    foreign = Session("pretrain", stage, inputs, out).state()
    save_atomically(foreign, {"never": "read"})
    own = Session("pretrain", stage_config("pretrain"), inputs, out).state()
    task = pretraining()
    optimization = task.config.pretraining
    assert fit(task, optimization, 0, own, "toy").resumed_from is None


def test_seeds_differ_with_every_part_and_are_the_same_everywhere():
    seeds = [
        seed_of(0, "pretrain", 1),
        seed_of(1, "pretrain", 0),
        seed_of(0, "pretrain", 2),
        seed_of(0, "finetune", 1),
        seed_of(0, "pretrain"),
    ]
    assert len(set(seeds)) == 5
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seed_of(0, "pretrain", 1) == 8422129913405734454


def test_dropout_is_another_one_in_every_epoch_and_with_every_seed(tmp_path):
    class Dropping(Scripted):
        def losses(self, epoch, start, generator):
            seen.append(tuple(torch.nn.functional.dropout(torch.ones(100)).tolist()))
            return super().losses(epoch, start, generator)

    masks = {}
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        seen = masks[name] = []
        torch.manual_seed(len(masks))
        fit(Dropping([0.5] * 3), settings(3), seed, tmp_path / f"{name}.pt", "toy")
    assert masks["one"] == masks["again"]
    assert len({*masks["one"], *masks["other"]}) == 2 * 3


@pytest.mark.parametrize("phase", ["pretraining", "finetuning"])
@pytest.mark.parametrize("recipe", ["epnet", "net"])
def test_validation_classifies_frozen_episodes_by_the_formulas_in_float64(
    request, store, validation, phase, recipe
):
    """By what the network gives in evaluation mode, with embedding propagation or without."""
    task = request.getfixturevalue(phase)(recipe)
    task.model.train()
    accuracy, loss = task.validate()
    pixels = torch.from_numpy(store.images[validation.images()].transpose(0, 1, 4, 2, 3))
    way, shot = validation.support.shape[1:]
    accuracies, losses = [], []
    for images, expected in zip(pixels / 127.5 - 1, validation.query_labels, strict=True):
        with torch.no_grad():
            points = task.model.backbone.eval()(images).double().numpy()
        if recipe == "epnet":
            points = embeddings(points)
        scores = label_scores(points, way, shot)[way * shot :]
        accuracies.append((scores.argmax(axis=1) == expected).mean())
        losses.append(cross_entropy(np.log(scores + 1e-6), list(expected)))
    assert accuracy == pytest.approx(np.mean(accuracies))
    assert loss == pytest.approx(np.mean(losses), rel=1e-4)


def test_a_network_that_sees_no_difference_is_at_chance(toy, stage_config):
    """In eval mode, after too few steps for BatchNorm's running statistics."""
    stage = stage_config("pretrain")
    store, episodes = ImageStore.open(toy.data), Episodes.load(toy.val)
    validator = Validator(store, episodes, stage, torch.device("cpu"))
    backbone = build(stage.backbone)
    for weights in backbone.parameters():
        torch.nn.init.zeros_(weights)
    accuracy, loss = validator(backbone)
    assert (accuracy, loss) == pytest.approx((1 / 5, math.log(5)))
