"""Several processes that train one network leave, fail and go on together."""

import json
import signal
import time

import pytest
import torch
from cpu_team import train_on_cpus

from epcore.errors import UserError
from epcore.runtime.interruption import Interrupted
from epcore.training.process_group import launch

pytestmark = pytest.mark.slow

OUTPUTS = ("pretrain.pt", "pretrain.csv")


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def train(stage_config, toy):
    """Two processes train a network with dropout; the exit code is the command line's."""

    def work(out, **changes):
        settings = {"epochs": 4, "batch_size": 12, "plateau": {"patience": 2}} | changes
        stage = stage_config(
            "pretrain", "epnet", "resnet12", augmentation=["flip"], pretraining=settings
        )
        try:
            launch(2, train_on_cpus, stage, toy.data, toy.val, out)
        except Interrupted as request:
            raise SystemExit(128 + request.number) from None

    return work


def test_asked_to_leave_all_save_the_same_step_and_a_new_team_goes_on(
    train, attempt, eventually, tmp_path
):
    whole, asked = tmp_path / "whole" / "pretrain.pt", tmp_path / "asked" / "pretrain.pt"
    assert attempt(train, whole).code() == 0
    states = asked.with_suffix(".state")
    process = attempt(train, asked)
    eventually(lambda: list(states.glob("[!.]*.pt")))
    assert process.send(signal.SIGTERM, 0.01) == 128 + signal.SIGTERM
    (state,) = states.glob("[!.]*.pt")
    saved = torch.load(state, weights_only=True)
    assert 0 < len(saved["curve"]) < 4
    assert attempt(train, asked).code() == 0
    for name in OUTPUTS:
        assert (asked.parent / name).read_bytes() == (whole.parent / name).read_bytes()
    facts = json.loads(asked.with_suffix(".meta.json").read_text())
    assert facts["resumed_from_epoch"] == len(saved["curve"])


def test_a_mistake_is_told_once_and_ends_all(train, tmp_path):
    began = time.monotonic()
    with pytest.raises(UserError, match=r"^training diverged in pretrain 1/4.*"):
        train(tmp_path / "pretrain.pt", learning_rate=1e12)
    assert time.monotonic() - began < 120
