"""Fabricated results of the demo's tables, in a folder of their own."""

from pathlib import Path

import pytest
from plans import plan_of
from score_files import write_results

from epcore.plan import Plan
from epcore.report.table import run

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def table_stage():
    return plan_of("both").tables.stage("main")


@pytest.fixture
def paper():
    return CONFIG / "paper" / "main.csv"


@pytest.fixture
def fabricate(tmp_path, monkeypatch):
    """`write_results` in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return write_results


@pytest.fixture
def scores(table_stage, fabricate):
    """The results of every cell of ours of the main table."""
    return fabricate(table_stage.cells)


@pytest.fixture
def typeset(fabricate):
    """A table of fabricated scores: typeset("placement", "demo") -> its text and its scores."""

    def build(name, scale="demo", config=CONFIG, seeds=None):
        plan = plan_of(scale, seeds) if config == CONFIG else Plan(config, scale, seeds)
        stage = plan.tables.stage(name)
        scores = fabricate(stage.cells)
        run(stage, list(map(Path, plan.tables.printed_files(name))), Path(f"{name}.csv"))
        return Path(f"{name}.tex").read_text(encoding="utf-8"), scores

    return build
