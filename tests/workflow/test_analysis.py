"""The analysis figures for real: published, not made again, and made again for what they read."""

import csv
import math
import shutil
from dataclasses import replace

import pytest

from epcore.plan import Plan

pytestmark = pytest.mark.workflow

NAMES = ("two-moons", "decision-boundary", "interpolation")
TARGETS = [f"figures/{name}.{ending}" for name in NAMES for ending in ("pdf", "png")]


@pytest.fixture
def drawn(everything_once, tmp_path):
    """A copy, times of files included, that a test may change."""
    folder = tmp_path / "my project"
    shutil.copytree(everything_once[0].folder, folder)
    return replace(everything_once[0], folder=folder)


def test_figures_are_published_beside_csv_files_of_what_they_show(everything_once):
    project, _ = everything_once
    results = project.folder / "results/tiny/figures"
    for name in NAMES:
        for ending in ("pdf", "png"):
            made = (results / f"{name}.{ending}").read_bytes()
            assert (project.folder / f"figures/{name}.{ending}").read_bytes() == made
        assert (results / f"{name}.meta.json").is_file()
        with (results / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        assert list(lines[0]) == ["name", "value", "low", "high", "what"]
        assert all(math.isfinite(float(line["value"])) for line in lines)


def test_a_second_run_has_nothing_to_do(drawn):
    assert drawn.snakemake("--cores", "2", *TARGETS).nothing_to_do


@pytest.mark.parametrize(
    ("old", "new", "redone"),
    [
        ("noise: 0.1", "noise: 0.2", "two-moons"),
        ("spread: 0.5", "spread: 0.4", "decision-boundary"),
        ("shown: 12", "shown: 10", "interpolation"),
    ],
)
def test_an_edit_of_a_section_redraws_its_figure_alone(drawn, old, new, redone):
    drawn.replace("config/figures.yaml", old, new)
    run = drawn.snakemake("-n", *TARGETS)
    assert run.jobs == {"figure": 1, "publish_figure": 1}
    assert f"wildcards: scale=tiny, figure={redone}\n" in run.text


@pytest.mark.parametrize(
    ("scale", "expected"), [("tiny", NAMES[:2]), ("demo", NAMES), ("paper", NAMES)]
)
def test_a_scale_has_the_figures_that_it_has_networks_for(project, scale, expected):
    found = Plan(project.folder / "config", scale).covered_figures
    assert [name for name in NAMES if name in found] == list(expected)


@pytest.mark.parametrize("scale", ["demo", "small", "paper"])
def test_the_interpolation_needs_no_network_episodes_or_features_that_the_main_table_has_not(
    project, scale
):
    plan = Plan(project.folder / "config", scale)
    runs = {shown.run for shown in plan.tables.cells("main")}
    assert len(plan.figures.interpolation_runs()) == 2
    assert set(plan.figures.interpolation_runs()) <= runs
