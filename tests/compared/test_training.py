"""Trained for some seconds each method learns what can be learned, and nothing where there is nothing."""

import numpy as np
import pytest
import torch

from epcore.checkpoint import Checkpoint
from epcore.compared import build_method
from epcore.data.episodes import pool_of, sample
from epcore.errors import UserError
from epcore.evaluation import meta_test
from epcore.evaluation.meta_test import Tester
from epcore.plan.compared_models import METHODS
from epcore.plan.models import Backbone, View
from epcore.plan.stages import MetaTestStage, MetaTrainStage
from epcore.training import episodic
from epcore.training.episodic import EpisodicTask
from epcore.training.loop import fit

CPU = torch.device("cpu")
WHOLE = View.model_validate({"resize": 1, "crop": 1})
CONV4 = Backbone(architecture="conv4")
# Enough for each on pictures of two colors.
STEPS = {"gnn": 100, "egnn": 60, "maml": 30}


def stage_of(name, shot=1, **training):
    settings = {
        "epochs": 1, "steps": STEPS.get(name, 40), "tasks": 2, "way": 5, "queries": 3,
        "learning_rate": 0.003, "weight_decay": 0, "halve_every": 10,
    }  # fmt: skip
    return MetaTrainStage(
        backbone=CONV4,
        view=WHOLE,
        precision="fp32",
        method={"name": name},
        training=settings | training,
        shot=shot,
        seed=0,
    )


def drawn(store, split, episodes=30, queries=5, shot=1):
    return sample(pool_of(store, split), 5, shot, queries, episodes, seed=7)


def trained(store, name, folder, **training):
    task = EpisodicTask(stage_of(name, **training), store, drawn(store, "val"), CPU)
    outcome = fit(task, task.settings, 0, folder / "state.pt", name)
    task.model.load_state_dict(outcome.weights)
    return task.model


def accuracies(store, method, episodes):
    return Tester(method, WHOLE, "fp32", CPU).test(store, episodes).accuracies


@pytest.mark.parametrize("name", METHODS)
def test_it_learns_to_tell_new_classes_apart(colors, tmp_path, name):
    method = trained(colors, name, tmp_path)
    assert accuracies(colors, method, drawn(colors, "novel")).mean() > 0.6


@pytest.mark.parametrize("name", METHODS)
def test_it_stays_at_chance_where_labels_mean_nothing(shuffled, tmp_path, name):
    method = trained(shuffled, name, tmp_path)
    found = accuracies(shuffled, method, drawn(shuffled, "novel", episodes=100))
    spread = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - 0.2) < 4 * spread
    assert spread < 0.02
