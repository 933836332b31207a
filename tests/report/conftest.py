"""Fabricated results of the demo's main table, in a folder of their own."""

import json
from pathlib import Path

import numpy as np
import pytest

from epcore.plan import Plan
from epcore.plan.stages import AggregateStage, LatexStage

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def aggregate_stage():
    return AggregateStage.model_validate_json(Plan(CONFIG, "demo").aggregate("main"))


@pytest.fixture
def latex_stage():
    return LatexStage.model_validate_json(Plan(CONFIG, "demo").latex("main"))


@pytest.fixture
def paper():
    return CONFIG / "paper" / "main.csv"


@pytest.fixture
def scores(aggregate_stage, tmp_path, monkeypatch):
    """Score and meta files of every cell of ours, as paths relative to the working directory.

    Returns (block, row, column) -> accuracies of its 40 episodes in [0, 1].
    """
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    written = {}
    for number, cell in enumerate(aggregate_stage.cells):
        accuracies = random.integers(20, 76, 40) / 75
        lines = [f"{n},{accuracy:.6f}" for n, accuracy in enumerate(accuracies)]
        files = [Path(cell.scores), Path(cell.checkpoint_meta)]
        for file in files:
            file.parent.mkdir(parents=True, exist_ok=True)
        files[0].write_text("\n".join(["episode,accuracy", *lines]) + "\n", encoding="utf-8")
        facts = {"parameters": 112_832 + 1000 * number}
        files[1].write_text(json.dumps(facts), encoding="utf-8")
        written[cell.block, cell.row, cell.column] = accuracies
    return written
