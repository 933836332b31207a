"""Accuracy of classifiers over their time: means of score files and of what metas say."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from figure_files import lines_of, same_files
from score_files import write_classifier

from epcore.errors import UserError
from epcore.files import meta_of
from epcore.plan import Plan
from epcore.report import speed

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def stage(fabricate):
    plan = Plan(CONFIG, "demo", seeds=2)
    fabricate(plan.tables.cells("classifiers"))
    return plan.figures.speed()


def test_each_classifier_has_a_point_in_each_panel_the_mean_of_its_seeds(stage):
    seconds = {}
    for number, point in enumerate(stage.points):
        seconds[point.scores] = 0.5 + number
        facts = {"made": {}, "seconds_per_1000_episodes": seconds[point.scores]}
        write_classifier(point.scores, facts)
    speed.run(stage, Path("figures/speed.pdf"))
    lines = lines_of(Path("figures/speed.csv"))
    blocks = Plan(CONFIG, "demo").tables.table("classifiers").blocks
    (shown,) = (block.rows for block in blocks if block.name == "--Net")
    panels = ("1-shot", "5-shot", "1-shot, Dirichlet", "5-shot, Dirichlet")
    assert sorted((line["panel"], line["classifier"]) for line in lines) == sorted(
        itertools.product(panels, (row.label or row.name for row in shown))
    )
    for line in lines:
        files = [
            point.scores
            for point in stage.points
            if (point.panel, point.label) == (line["panel"], line["classifier"])
        ]
        assert len(files) == 2
        accuracies = [pd.read_csv(scores.file)[scores.column].mean() for scores in files]
        assert float(line["accuracy"]) == pytest.approx(100 * np.mean(accuracies), rel=1e-3)
        spent = [seconds[file] for file in files]
        assert float(line["seconds"]) == pytest.approx(np.mean(spent), rel=1e-3)
    assert Path("figures/speed.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_same_metas_give_the_same_bytes(stage):
    speed.run(stage, Path("one/speed.pdf"))
    speed.run(stage, Path("two/speed.pdf"))
    same_files(Path("one/speed.pdf"), Path("two/speed.pdf"))


DAMAGED = ["[]", '{"made": {}}', '{"made": {}, "seconds_per_1000_episodes": "long"}']


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_meta_is_told(stage, content):
    meta_of(Path(stage.points[0].scores.file)).write_text(content, encoding="utf-8")
    with pytest.raises(
        UserError, match=r"5way-1shot\.meta\.json is damaged.*; delete it"
    ) as caught:
        speed.run(stage, Path("figures/speed.pdf"))
    assert len(str(caught.value).splitlines()) == 1
    assert not Path("figures/speed.csv").exists()
