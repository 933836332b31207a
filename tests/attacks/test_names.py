"""Names that would control a terminal do not reach it."""

import json
import time

import pytest

from epcore.commands import cli
from epcore.commands.status import overview
from epcore.commands.terminal import print_table
from epcore.data.builders.folder import class_folders
from epcore.errors import UserError, visible

CONTROLS = {
    "a color": "\x1b[31m",
    "a bell": "\x07",
    "a carriage return": "\r",
    "a line": "\n",
    "a line separator": "\u2028",
    "an old control": "\x9b2J",
    "right to left": "\u202e",
    "half a character": "\udc80",
}


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_is_written_out(name):
    shown = visible(f"epnet{CONTROLS[name]}net")
    assert shown.isprintable()
    assert shown.startswith("epnet\\")
    assert shown.endswith("net")


@pytest.mark.parametrize("text", ["épagneul breton", "犬", "two words", "a—b", "naïve ± 0.5"])
def test_other_text_stays(text):
    assert visible(text) == text


def test_a_message_has_none(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["status", "--results", "gone\x1b[2J\nepcore: all is well"]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "gone\\x1b[2J" in line


def test_the_status_has_none(tmp_path, capsys):
    """A heartbeat may come from any machine that shares the folder."""
    state = tmp_path / "demo/models/glyph-mini/conv4/epnet/s0/pretrain.state"
    state.mkdir(parents=True)
    beat = {
        **{"stage": "pretrain", "epoch": 1, "epochs": 2, "step": 1, "steps": 2},
        **{"val_accuracy": 0.5, "best_val_accuracy": 0.5, "images_per_second": 10.0},
        **{"seconds_left": 5.0, "slurm_job": None, "updated": time.time()},
        "host": "node\x1b[2J",
    }
    (state / "heartbeat.json").write_text(json.dumps(beat), encoding="utf-8")
    print_table(overview(tmp_path, time.time())[0])
    shown = capsys.readouterr().out
    assert "node\\x1b[2J" in shown
    assert "\x1b" not in shown


def test_a_folder_whose_name_is_not_utf8_is_refused_in_a_line(tmp_path):
    (tmp_path / "images/half \udc80 character").mkdir(parents=True)
    with pytest.raises(UserError, match=r"images: the name 'half \\udc80 character' is not UTF-8"):
        class_folders(tmp_path / "images")
