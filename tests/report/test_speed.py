"""Accuracy of classifiers over their time: means of score files and of what metas say."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from figure_files import lines_of
from plans import plan_of
from score_files import write_classifier

from epcore.report import table
from epcore.report.scores import reading_classifier
from epcore.report.speed import run

TABLE = Path("tables/classifiers.csv")


@pytest.fixture
def plan():
    return plan_of("demo", seeds=2)


@pytest.fixture
def stage(plan, fabricate):
    """The figure's config, beside the table that it is drawn from."""
    cells = plan.tables.measured("classifiers")
    fabricate(cells)
    for number, cell in enumerate(cells):
        told = {"made": {}, "assumes": "T", "seconds_per_1000_episodes": 0.5 + number}
        write_classifier(cell.scores, told)
    table.run(plan.tables.stage("classifiers"), [], TABLE)
    return plan.figures.of_table("speed")


@pytest.mark.slow
def test_each_classifier_has_a_point_in_each_panel_the_mean_of_its_seeds(plan, stage):
    run(stage, TABLE, Path("figures/speed.pdf"))
    lines = lines_of(Path("figures/speed.csv"))
    (shown,) = (b.rows for b in plan.tables.table("classifiers").blocks if b.name == "--Net")
    labels = {row.name: row.label or row.name for row in shown}
    panels = {
        column.heading: column.name
        for column in plan.tables.table("classifiers").columns
        if column.heading in ("1-shot", "5-shot", "1-shot, Dirichlet", "5-shot, Dirichlet")
    }
    assert sorted((line["panel"], line["classifier"]) for line in lines) == sorted(
        itertools.product(panels, labels.values())
    )
    for line in lines:
        behind = [
            cell.scores
            for cell in plan.tables.measured("classifiers")
            if (cell.block, cell.column) == ("--Net", panels[line["panel"]])
            and labels[cell.row] == line["classifier"]
        ]
        assert len(behind) == 2
        accuracies = [pd.read_csv(scores.file)[scores.column].mean() for scores in behind]
        assert float(line["accuracy"]) == pytest.approx(100 * np.mean(accuracies), rel=1e-3)
        spent = []
        for scores in behind:
            with reading_classifier(scores) as facts:
                spent.append(facts["seconds_per_1000_episodes"])
        assert float(line["seconds"]) == pytest.approx(np.mean(spent), rel=1e-3)
    assert Path("figures/speed.png").stat().st_size > 10_000
