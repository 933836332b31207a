"""Fabricated results of the demo's tables, in a folder of their own."""

import json
from pathlib import Path

import numpy as np
import pytest
from score_files import write_curve, write_scores

from epcore.plan import Plan
from epcore.report.table import run

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def table_stage():
    return Plan(CONFIG, "demo").tables.stage("main")


@pytest.fixture
def paper():
    return CONFIG / "paper" / "main.csv"


@pytest.fixture
def fabricate(tmp_path, monkeypatch):
    """Writes score and meta files of cells, as paths relative to the working directory.

    Where a table tells of trainings, curves too: pretraining's rate falls after two of four
    epochs, that of fine-tuning never. Where it tells of classifiers, their metas.
    Returns (block, row, column) -> accuracies of its 40 episodes in [0, 1].
    """
    monkeypatch.chdir(tmp_path)

    def write(cells):
        random = np.random.default_rng(0)
        by_file, written = {}, {}
        for number, cell in enumerate(cells):
            for file in (cell.scores, cell.baseline):
                if file and file not in by_file:
                    by_file[file] = random.integers(20, 76, 40) / 75
                    write_scores(file, by_file[file])
            if cell.method_meta:
                chosen = {"cost": 0.1 * (1 + cell.seed), "steps": 3} if number % 2 else {}
                method = {"assumes": "T B", "chosen": chosen, "made": {}}
                method |= {"validation_accuracy": 0.5 + cell.seed / 10 if chosen else None}
                method |= {"seconds_per_1000_episodes": 2.5 + number % 7}
                Path(cell.method_meta).write_text(json.dumps(method), encoding="utf-8")
            facts = Path(cell.checkpoint_meta)
            facts.parent.mkdir(parents=True, exist_ok=True)
            known = {"parameters": 112_832 + 1000 * number, "best": {"epoch": 0}, "made": {}}
            known |= {"seconds": 60, "energy": {"kwh": 0.002}}
            facts.write_text(json.dumps(known), encoding="utf-8")
            for training in cell.trainings:
                falls = [0.1, 0.1, 0.01, 0.01] if training.phase == "pretraining" else [0.1, 0.1]
                write_curve(training, falls)
            written[cell.block, cell.row, cell.column] = by_file[cell.scores]
        return written

    return write


@pytest.fixture
def scores(table_stage, fabricate):
    """The results of every cell of ours of the main table."""
    return fabricate(table_stage.cells)


@pytest.fixture
def typeset(fabricate):
    """A table of fabricated scores: typeset("placement", "demo") -> its text and its scores."""

    def build(name, scale="demo", config=CONFIG, seeds=None):
        plan = Plan(config, scale, seeds)
        stage = plan.tables.stage(name)
        scores = fabricate(stage.cells)
        run(stage, Path(f"{name}.csv"), *plan.tables.printed_files(name) or [None])
        return Path(f"{name}.tex").read_text(encoding="utf-8"), scores

    return build
