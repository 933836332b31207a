"""CC+rot and S2M2_R are recipes of pretraining: the controls that others have, CC+rot's loss."""

import itertools
import math

import numpy as np
import pytest
import torch
from plans import plan_of

from epcore.data.augment import Augmenter
from epcore.data.episodes import pool_of, sample
from epcore.evaluation.embed import embed
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve
from epcore.training.loop import fit
from epcore.training.pretrain import PretrainingTask

CPU = torch.device("cpu")


def stage_of(recipe, **training):
    """The config of the demo's pretraining, with another training."""
    stage = plan_of("demo").runs.pretrain("glyph-mini", "conv4", recipe, 0)
    pretraining = stage.pretraining.model_copy(update={"epochs": 1, "batch_size": 16} | training)
    return stage.model_copy(update={"pretraining": pretraining, "precision": "fp32"})


def task_on(store, recipe, **training):
    validation = sample(pool_of(store, "val"), 5, 1, 5, 8, seed=7)
    return PretrainingTask(stage_of(recipe, **training), store, validation, CPU)


def accuracies(store, task):
    """With one shot on novel classes, by the classifier of its validation."""
    episodes = sample(pool_of(store, "novel"), 5, 1, 5, 40, seed=7)
    rows = episodes.unique_image_indices()
    view = Augmenter((), task.config.view)
    features = embed(task.model.backbone, store, rows, view, CPU, "fp32")
    return solve(features, episodes, Inference(task.config.propagation)).accuracies


def trained(store, folder, recipe, **training):
    task = task_on(store, recipe, **training)
    outcome = fit(task, task.settings, 0, folder / "state.pt", recipe)
    task.model.load_state_dict(outcome.weights)
    return task


# Epochs in which each learns what the toy has: mixtures and rotations of a quarter take longer.
EPOCHS = {"cc-rot": 1, "cosine-heads": 2, "s2m2": 3}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", EPOCHS)
def test_it_learns_to_tell_new_classes_apart(dimmed, tmp_path, recipe):
    before = accuracies(dimmed, task_on(dimmed, recipe)).mean()
    after = accuracies(dimmed, trained(dimmed, tmp_path, recipe, epochs=EPOCHS[recipe])).mean()
    assert after > max(0.6, before + 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", EPOCHS)
def test_it_stays_at_chance_where_labels_mean_nothing(shuffled, tmp_path, recipe):
    found = accuracies(shuffled, trained(shuffled, tmp_path, recipe))
    spread = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - 0.2) < 4 * spread
    assert spread < 0.03


def cosine(one, other):
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def cross_entropy(rows, classes):
    """The mean over rows of logits, one by one."""
    errors = [
        math.log(sum(map(math.exp, row))) - row[k] for row, k in zip(rows, classes, strict=True)
    ]
    return sum(errors) / len(errors)


def test_the_loss_is_that_of_scaled_cosines_to_classes_and_to_rotations(colors):
    """All four rotations have the image's class."""
    task = task_on(colors, "cc-rot")
    rows = colors.image_indices("base")[[3, 90, 41]]
    images = [np.rot90(colors.images[row], turn) for turn in range(4) for row in rows]
    pixels = np.stack(images).transpose(0, 3, 1, 2) / 127.5 - 1
    batch = torch.from_numpy(pixels.astype(np.float32))
    features = task.model.backbone(batch).detach().double().tolist()
    classes, turns = task.model.class_head, task.model.rotation_head
    assert (len(classes.weight), len(turns.weight)) == (24, 4)
    assert (classes.scale.item(), turns.scale.item()) == (10, 10)
    with torch.no_grad():
        classes.scale.fill_(7)
        turns.scale.fill_(3)
    of_classes, of_turns = (
        [[scale * cosine(x, weight) for weight in head.weight.double().tolist()] for x in features]
        for head, scale in ((classes, 7), (turns, 3))
    )
    labels = task.labels[rows].tolist()
    expected = cross_entropy(of_classes, labels * 4)
    expected += cross_entropy(of_turns, [turn for turn in range(4) for _ in rows])
    loss = task.loss(batch, task.labels[rows])
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    loss.backward()
    learned = itertools.chain(classes.parameters(), turns.parameters())
    assert all(weight.grad.abs().max() > 0 for weight in learned)
