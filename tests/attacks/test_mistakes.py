"""Mistakes that a new user makes: each ends in one line that says what to do.

Misspelled names are in tests/workflow/test_mistakes.py and tests/evaluation/test_classify.py.
"""

import builtins
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from plans import command

from epcore.commands import cli
from epcore.plan import Plan

ROOT = Path(__file__).parents[2]
SPLIT = "split: {base: 5, val: 5, novel: 5, seed: 0}"
SCALE = """\
extends: demo
note: Pictures of mine.
columns: {{mini: mine, tiered: null, cub: null}}
tables: [main]
datasets:
  mine: {{kind: {kind}, title: mine, path: {path}, image_size: 16, {more}}}
backbones: {{conv4: {{width: 1/8}}, resnet12: null, wrn: null}}
episodes: {{novel: 20, val: 10}}
recipe:
  pretraining: {{epochs: 1, batch_size: 32, learning_rate: 0.05}}
imagenet_fs: null
"""
JOB = {"dataset": "mine", "backbone": "conv4", "recipe": "epnet"}


class Checkout:
    """A user's folder: the config, a scale `mine` and, below data/mine, noise in 15 classes."""

    def __init__(self, folder, capsys):
        self.folder, self._capsys = folder, capsys
        self.scale()

    def scale(self, kind="folder", path="data/mine", more=SPLIT):
        text = SCALE.format(kind=kind, path=path, more=more)
        self.write("config/scales/mine.yaml", text)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def picture(self, name, pixels):
        path = self.folder / "data/mine/images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).save(path)

    def pictures(self, count=22):
        draw = np.random.default_rng(0)
        for name in range(15):
            for number in range(count):
                self.picture(f"c{name:02}/{number}.png", draw.integers(0, 255, (16, 16, 3)))

    def done(self, *steps):
        """The stages that went well before the mistake."""
        for step in steps:
            stage = "data" if step == "data" else "episodes"
            assert self.run(stage, {**JOB, "protocol": step}) == 0
        self._capsys.readouterr()

    def run(self, stage, names=None, *words):
        """A command, or a stage of the job of these names; words come last and count."""
        job = [stage] if names is None else command(self.plan(), stage, **names)
        return cli.main([*job, *map(str, words)])

    def plan(self):
        return Plan(self.folder / "config", "mine")

    def told(self):
        """The one line that it was told, behind what a progress bar leaves."""
        message = self._capsys.readouterr().err
        assert "Traceback" not in message
        (line,) = [each for each in message.splitlines() if each.startswith("epcore:")]
        return line


@pytest.fixture
def checkout(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return Checkout(tmp_path, capsys)


def built(user):
    user.pictures(8)
    user.done("data")


def alike(user):
    user.scale("npz", "data/mine.npz", "rotations_are_classes: false")
    user.write("data/x", "")
    classes = np.repeat(np.arange(15), 22)
    splits = np.array(["base", "val", "novel"])[classes % 3]
    images = np.broadcast_to(classes[:, None, None, None] % 3, (330, 16, 16, 3))
    np.savez("data/mine.npz", images=images.astype(np.uint8), labels=classes, split=splits)
    user.done("data", "val-5way-5shot")


def nothing(user):
    pass


DATA = ["data", JOB]
PHOTOS = ["embed-folder", None, "photos", "--weights", "mine.pt", "--backbone", "conv4"]

# What went before -> what is typed -> what the line says.
MISTAKES = {
    "a data set that is not there": (
        nothing,
        DATA,
        "data/mine/images does not exist; put a folder for each class",
    ),
    "pictures that are all alike": (
        alike,
        ["pretrain", JOB],
        "look whether the images are all alike",
    ),
    "a fine-tuning before its pretraining": (
        built,
        ["finetune", {**JOB, "shot": 1}],
        r"make it first: snakemake --cores all results/mine/\S+ --config scale=mine",
    ),
    "features in no folder": (
        nothing,
        [*PHOTOS, "--out", "mine/x.npz"],
        "mine/x.npz: there is no folder mine; make it",
    ),
    "no results here": (
        nothing,
        ["status", None],
        "results is no folder; say where the results are: --results FOLDER",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_it_is_one_line_that_says_what_to_do(checkout, mistake):
    before, words, said = MISTAKES[mistake]
    before(checkout)
    assert checkout.run(*words) == 2
    line = checkout.told()
    assert re.search(said, line), line
    assert not list(checkout.folder.glob("mine/*"))


def test_another_folder_than_the_projects(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["doctor"]) == 2
    assert "run this where the Snakefile is" in capsys.readouterr().err


def test_a_python_without_the_packages(checkout, monkeypatch):
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    monkeypatch.delitem(sys.modules, "epcore.evaluation.base_classes", raising=False)
    assert checkout.run("base-classes", {**JOB, "checkpoint": "pretrain"}) == 2
    assert "the package torch is not installed in " in checkout.told()


def test_an_old_python(tmp_path):
    """`make` with a Python that says that it is 3.9."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).touch()
    old = tmp_path / "python3.9"
    said = "import sys; sys.version_info, sys.version = (3, 9, 2), '3.9.2'; exec(sys.argv[2])"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{said}" "$@"\n', encoding="utf-8")
    old.chmod(0o755)
    command = ["make", "all", f"PYTHON={old}"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    line = f"Python 3.11 or newer is needed, and {old} is 3.9.2; say which: PYTHON=python3.12 make"
    assert line in run.stderr
    assert not (tmp_path / ".venv").exists()
