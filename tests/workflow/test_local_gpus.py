"""GPUs of this machine in a real run; a stand-in `nvidia-smi` names cards that compute nothing."""

import os
import re
import shutil

import pytest

pytestmark = pytest.mark.workflow

TRAINED = [
    f"results/tiny/models/tiny-glyphs/conv4/{name}/s0/pretrain.pt" for name in ("net", "epnet")
]


@pytest.fixture
def project(finished):
    """A project with data and episodes, whose networks are gone."""
    shutil.rmtree(finished.folder / "results/tiny/models")
    return finished


@pytest.fixture
def cards(tmp_path, monkeypatch):
    """cards(2) makes this a machine with two."""

    def make(count):
        folder = tmp_path / "bin"
        folder.mkdir()
        script = folder / "nvidia-smi"
        lines = "".join(f"echo 'GPU {n}: A card (UUID: GPU-test-{n})'\n" for n in range(count))
        script.write_text(f"#!/bin/sh\n{lines}")
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return make


def launch(run):
    """The largest number of pretrainings that ran at the same time, by Snakemake's own log."""
    running = most = 0
    for event in re.findall(
        r"^(?:local)?rule pretrain:|^Finished jobid: \d+ \(Rule: pretrain\)", run.text, re.M
    ):
        running += 1 if "rule pretrain" in event else -1
        most = max(most, running)
    return most


@pytest.mark.parametrize(("count", "most"), [(1, 1), (2, 2)])
def test_eight_cores_run_at_most_one_training_on_each_card(project, cards, count, most):
    cards(count)
    run = project.snakemake("--cores", "8", "-p", *TRAINED, "--config", "allow_cpu=true")
    assert run.code == 0, run.text
    assert launch(run) == most
    assert run.text.count("epcore pretrain --allow-cpu --gpus 1") == 2


def test_without_a_card_the_same_rules_run_on_the_cpu_as_many_as_there_are_cores(project, cards):
    cards(0)
    run = project.snakemake("--cores", "2", "-p", *TRAINED)
    assert run.code == 0, run.text
    assert launch(run) == 2
    assert run.text.count("--gpus 0") == 2


def test_a_user_may_hide_the_cards(project, cards, monkeypatch):
    cards(2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "--gpus 0" in project.snakemake("-n", "-p", TRAINED[0]).text
