"""The analysis figures for real: published beside what they show."""

import math

import pytest
from figure_files import lines_of

pytestmark = pytest.mark.workflow

NAMES = ("two-moons", "decision-boundary", "interpolation")


def test_figures_are_published_beside_csv_files_of_what_they_show(everything_once):
    project, _ = everything_once
    results = project.folder / "results/tiny/figures"
    for name in NAMES:
        for ending in ("pdf", "png"):
            made = (results / f"{name}.{ending}").read_bytes()
            assert (project.folder / f"figures/{name}.{ending}").read_bytes() == made
        assert (results / f"{name}.meta.json").is_file()
        lines = lines_of(results / f"{name}.csv")
        assert list(lines[0]) == ["name", "value", "low", "high", "what"]
        assert all(math.isfinite(float(line["value"])) for line in lines)
