"""`epcore status`: what heartbeats say, from the files that trainings write."""

import json
import math
import os
import re
import time

import pytest
import torch

from epcore.commands.cli import main
from epcore.commands.status import beats
from epcore.commands.status import overview as table_and_summary
from epcore.commands.terminal import print_table
from epcore.errors import UserError
from epcore.training import heartbeat
from epcore.training.heartbeat import Heartbeat
from epcore.training.loop import fit

STATE = "demo/models/glyph-mini/conv4/epnet/s0/pretrain.state/0123.json"


def overview(results, now):
    return table_and_summary(results, now)[1]


@pytest.fixture
def beat(tmp_path, monkeypatch):
    """Writes the heartbeat of a training of 4 epochs of 10 steps, 20 s after it went on at 5."""
    now = [1000.0]
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(heartbeat.time, "time", lambda: now[0])

    def write(step, curve, **where):
        now[0] = 1000.0
        heart = Heartbeat(tmp_path / STATE, "pretrain", images=64, total=40, done=5)
        now[0] = 1020.0
        heart.beat(step, 10, [{"val_accuracy": value} for value in curve])
        return json.loads((tmp_path / STATE).read_text())

    return write


def test_speed_and_time_left_are_those_of_the_steps_of_this_process(beat):
    """25 steps are done, 20 of them in these 20 s; 15 are left."""
    content = beat(5, [0.25, 0.5])
    assert content["images_per_second"] == 64
    assert content["seconds_left"] == 15
    assert (content["epoch"], content["epochs"], content["step"], content["steps"]) == (2, 4, 5, 10)
    assert (content["val_accuracy"], content["best_val_accuracy"]) == (0.5, 0.5)


def test_a_line_for_each_training_says_epoch_accuracy_speed_time_and_place(beat, tmp_path, capsys):
    beat(5, [0.5, 0.25])
    table, summary = table_and_summary(tmp_path, now=1030.0)
    print_table(table)
    words = re.split(r"  +", capsys.readouterr().out.splitlines()[1])
    assert words[0] == "demo glyph-mini/conv4/epnet/s0/pretrain"
    assert words[1:8] == ["pretrain", "2/4", "5/10", "25.00", "50.00", "64", "0:00:15"]
    assert summary == "1 trainings running, 0 silent, 0 finished"


def test_a_training_that_left_is_not_there(beat, tmp_path):
    beat(5, [0.5])
    Heartbeat(tmp_path / STATE, "pretrain", images=64, total=40, done=5).stop()
    assert overview(tmp_path, now=1021.0) == "0 trainings running, 0 silent, 0 finished"


def test_a_training_that_was_not_heard_of_is_silent(beat, tmp_path, capsys):
    beat(5, [])
    table, summary = table_and_summary(tmp_path, now=1020.0 + 600)
    print_table(table)
    assert "silent for 0:10:00" in capsys.readouterr().out
    assert summary.startswith("0 trainings running, 1 silent, 0 finished; silent ones go on")


def test_finished_checkpoints_are_counted_and_neither_states_nor_halves_of_killed_ones(tmp_path):
    names = (
        "a/pretrain.pt",
        "b/pretrain.pt",
        "b/finetune-1shot.state/0.pt",
        "a/.pretrain.0a1b.tmp.pt",
    )
    for name in names:
        (tmp_path / "demo/models" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "demo/models" / name).touch()
    assert overview(tmp_path, time.time()) == "0 trainings running, 0 silent, 2 finished"


def test_a_beat_from_before_the_checkpoint_was_finished_is_left_out(beat, tmp_path):
    """It is that of a killed training, with other settings than the one that went on."""
    beat(5, [])
    checkpoint = (tmp_path / STATE).parent.with_suffix(".pt")
    checkpoint.touch()
    for finished, count in ((1015.0, 1), (1026.0, 0)):  # the second training writes over the first
        os.utime(checkpoint, (finished, finished))
        assert len([*beats(tmp_path)]) == count


@pytest.mark.parametrize("left", ['{"stage":', "", "{}", "[]", "5", '{"updated": 1}'])
def test_half_a_heartbeat_is_left_out(beat, tmp_path, left):
    beat(5, [])
    (tmp_path / STATE).write_text(left)
    assert overview(tmp_path, 1020.0).startswith("0 trainings running")


def test_a_folder_that_is_not_there_is_told_with_the_remedy(tmp_path, capsys):
    assert main(["status", "--results", str(tmp_path / "none")]) == 2
    assert "--results FOLDER" in capsys.readouterr().err


def test_it_tells_of_one_scale_if_that_is_asked_for(tmp_path, capsys):
    for scale in ("demo", "small"):
        (tmp_path / scale / "models").mkdir(parents=True)
        (tmp_path / scale / "models" / "a.pt").touch()
    (tmp_path / "small" / "models" / "b.pt").touch()
    for options, finished in (((), 3), (("--scale", "small"), 2)):
        assert main(["status", "--results", str(tmp_path), *options]) == 0
        assert f"{finished} finished" in capsys.readouterr().out
    assert main(["status", "--results", str(tmp_path), "--scale", "smal"]) == 2
    assert "no results of scale smal; did you mean 'small'?" in capsys.readouterr().err


class Line:
    """A training of one weight; three steps an epoch, of seven images each."""

    steps, images_per_step = 3, 7

    def __init__(self):
        self.model = torch.nn.Linear(1, 1)

    def seed(self, epoch):
        return epoch

    def losses(self, epoch, start, generator):
        for _ in range(start, self.steps):
            yield self.model(torch.ones(1, 1)).square().sum()

    def validate(self):
        return 0.5, 1.0


def test_a_heartbeat_is_beside_the_state_while_a_training_runs(tmp_path, monkeypatch, stage_config):
    class Watched(Line):
        def validate(self):
            beats.append(json.loads((tmp_path / "0123.json").read_text()))
            return super().validate()

    beats = []
    monkeypatch.setattr(heartbeat, "EVERY", 0.0)
    settings = stage_config("pretrain").pretraining
    fit(Watched(), settings, 0, tmp_path / "0123.pt", "pretrain")
    last = beats[-1]
    assert (last["stage"], last["epoch"], last["step"]) == ("pretrain", settings.epochs - 1, 3)
    assert last["images_per_second"] > 0
    assert last["val_accuracy"] == 0.5
    assert [path.name for path in tmp_path.iterdir()] == ["0123.pt"]


def test_a_training_that_diverges_leaves_no_heartbeat(tmp_path, monkeypatch, stage_config):
    class Diverging(Line):
        steps = 4

        def losses(self, epoch, start, generator):
            yield from super().losses(epoch, start, generator)
            assert (tmp_path / "0123.json").exists()
            yield self.model(torch.ones(1, 1)).square().sum() * math.nan

    monkeypatch.setattr(heartbeat, "EVERY", 0.0)
    with pytest.raises(UserError, match="training diverged"):
        fit(Diverging(), stage_config("pretrain").pretraining, 0, tmp_path / "0123.pt", "pretrain")
    assert not (tmp_path / "0123.json").exists()


def test_a_heartbeat_that_cannot_be_written_ends_no_training(tmp_path, monkeypatch):
    monkeypatch.setattr(heartbeat, "EVERY", 0.0)
    (tmp_path / "file").touch()
    heart = Heartbeat(tmp_path / "file" / "0.json", "pretrain", 1, 10, 0)
    heart.beat(1, 5, [])
