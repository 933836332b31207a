"""Two processes that train one network: the result is that of one."""

import json

import pytest
import torch
from cpu_team import train_on_cpus

from epcore.backbones.checkpoint import Checkpoint
from epcore.errors import UserError
from epcore.files import ENERGY, meta_of
from epcore.training import pretrain
from epcore.training.pretrain import PretrainingTask
from epcore.training.process_group import ALONE, ProcessGroup

pytestmark = pytest.mark.slow

SETTINGS = {"epochs": 1, "batch_size": 40, "learning_rate": 0.01}


def weights_of(out, stage):
    """All trained weights and statistics in one vector."""
    checkpoint = Checkpoint.load(out, stage.backbone)
    parts = [*checkpoint.weights.values(), *checkpoint.class_head.values()]
    return torch.cat([part.double().flatten() for part in parts])


def curve_of(out):
    lines = out.with_suffix(".csv").read_text().splitlines()[1:]
    return [[float(number) for number in line.split(",")] for line in lines]


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        ("epnet", {"augmentation": ["flip", "crop", "jitter"]}),
        ("net", {"pretraining": SETTINGS | {"rotation_weight": 0}}),
    ],
)
def test_two_processes_train_the_network_of_one(
    stage_config, toy, tmp_path, monkeypatch, recipe, changes
):
    """BatchNorm, embedding propagation and both heads see the whole batch in either case."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    stage = stage_config("pretrain", recipe, **{"pretraining": SETTINGS} | changes)
    alone, both = tmp_path / "alone" / "pretrain.pt", tmp_path / "both" / "pretrain.pt"
    slower = stage.model_copy(
        update={"pretraining": stage.pretraining.model_copy(update={"learning_rate": 1e-12})}
    )
    pretrain.train(ALONE, slower, toy.data, toy.val, tmp_path / "start" / "pretrain.pt")
    pretrain.train(ALONE, stage, toy.data, toy.val, alone)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(pretrain, "train", train_on_cpus)
    token = ENERGY.set(lambda: {"kwh": 0.5})
    pretrain.run(stage, toy.data, toy.val, both, require_gpu=False, gpus=2)
    ENERGY.reset(token)
    start = weights_of(tmp_path / "start" / "pretrain.pt", stage)
    one, two = weights_of(alone, stage), weights_of(both, stage)
    # It is some 5e-6 until rounding decides which of two pixels is the greater in a max-pool, and
    # then up to 5e-3; a variance of each process's own is 4e-2 and more, a lost factor 0.4.
    assert (one - two).norm() < 2e-2 * (one - start).norm()
    # An accuracy may differ by an image or two of 750.
    assert curve_of(both) == [pytest.approx(row, rel=2e-2) for row in curve_of(alone)]
    names = {path.name for path in both.parent.iterdir()}
    assert names == {"pretrain.pt", "pretrain.csv", "pretrain.meta.json", "pretrain.state"}
    meta = json.loads(meta_of(both).read_text())
    assert (meta["processes"], meta["energy"]) == (2, {"kwh": 0.5})


def test_a_batch_that_does_not_divide_is_refused(stage_config, store, validation):
    stage = stage_config("pretrain", pretraining={"batch_size": 5})
    with pytest.raises(UserError, match=r"3 GPUs cannot share the 20 images of a batch"):
        PretrainingTask(stage, store, validation, torch.device("cpu"), ProcessGroup(0, 3))


def test_more_gpus_than_there_are_is_one_line(stage_config, toy, tmp_path):
    with pytest.raises(UserError, match=r"2 GPUs are asked for, here are 0"):
        pretrain.run(
            stage_config("pretrain"),
            toy.data,
            toy.val,
            tmp_path / "x.pt",
            require_gpu=False,
            gpus=2,
        )
