"""The analysis figures for real: published, not made again, and made again for what they read."""

import csv
import math

import pytest

pytestmark = pytest.mark.workflow

NAMES = ("two-moons", "decision-boundary", "interpolation")


def test_figures_are_published_beside_csv_files_of_what_they_show(everything_once):
    project, run = everything_once
    assert run.jobs["figure_with_numbers"] == len(NAMES)
    results = project.folder / "results/tiny/figures"
    for name in NAMES:
        for ending in ("pdf", "png"):
            made = (results / f"{name}.{ending}").read_bytes()
            assert (project.folder / f"figures/{name}.{ending}").read_bytes() == made
        assert (results / f"{name}.meta.json").is_file()
        assert (results / f"{name}.csv").stat().st_size > 0
        with (results / f"{name}-numbers.csv").open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        assert list(lines[0]) == ["name", "value", "low", "high", "what"]
        assert all(math.isfinite(float(line["value"])) for line in lines)
