"""The figure of single episodes: quantiles and shares, counted here one by one."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from figure_files import lines_of
from plans import plan_of

from epcore.errors import UserError
from epcore.report import table
from epcore.report.per_episode import run, tabulate
from epcore.report.text_table import by_seed, read_tests

CONFIG = Path(__file__).parents[2] / "config"
TABLE, OUT = Path("tables/main.csv"), Path("figures/per-episode.pdf")


@pytest.fixture
def stage(fabricate):
    plan = plan_of("both", seeds=2)
    fabricate(plan.tables.measured("main"))
    table.run(plan.tables.stage("main"), [CONFIG / "paper/main.csv"], TABLE)
    return plan.figures.of_table("per-episode")


def accuracies(stage, line, row):
    """Those of a row at the place of a line, of both seeds one after the other."""
    places = {
        cell.key
        for cell in stage.cells
        if cell.row == row
        and (cell.backbone, cell.dataset, cell.episodes)
        == (line["backbone"], line["dataset"], line["episodes"])
    }
    files = {
        cell.seed: cell.scores.file
        for cell in plan_of("both", seeds=2).tables.measured("main")
        if (cell.block, cell.row, cell.column) in places
    }
    assert sorted(files) == [0, 1]
    found = [np.loadtxt(files[seed], delimiter=",", skiprows=1)[:, 1] for seed in (0, 1)]
    return 100 * np.concatenate(found)


def test_quantiles_and_shares_are_those_of_the_episodes_of_all_seeds(stage):
    run(stage, TABLE, OUT)
    lines = lines_of(OUT.with_suffix(".csv"))
    assert len(lines) == 2 * 2 * 3 * 2  # data sets, shots, backbones, rows
    for line in lines:
        found = accuracies(stage, line, line["row"])
        for share in (5, 25, 50, 75, 95):
            assert float(line[f"q{share:02}"]) == pytest.approx(
                np.percentile(found, share), abs=1e-4
            )
        net, epnet = (accuracies(stage, line, row) for row in ("--Net", "EPNet"))
        counted = {"above": 0, "equal": 0, "below": 0}
        for one, other in zip(epnet, net, strict=True):
            counted["above" if one > other else "below" if one < other else "equal"] += 1
        assert 0 < counted["above"] < 80
        for name, count in counted.items():
            assert float(line[name]) == pytest.approx(100 * count / 80, abs=1e-4)
    assert OUT.with_suffix(".png").stat().st_size > 10_000


def test_rows_are_compared_over_the_episodes_that_both_have():
    rows, place = ("A", "B"), {"dataset": "d", "backbone": "b", "episodes": "e", "seed": 0}
    shown = {"A": [50, 50, 50, 50], "B": [60, 40]}
    episodes = pd.DataFrame(
        {**place, "row": row, "episode": number, "accuracy": accuracy}
        for row, values in shown.items()
        for number, accuracy in enumerate(values)
    )
    shares = tabulate(rows, episodes)[["above", "equal", "below"]]
    assert (shares == [50, 0, 50]).all(axis=None)


def of_first_panel(stage):
    """The score file of one of the rows that are drawn."""
    tests = read_tests(by_seed(TABLE))
    return Path(tests["CONV-4", stage.figure.rows[0], "mini1"][0]["scores"])


def test_scores_that_are_not_those_of_the_table_are_told(stage):
    scores = of_first_panel(stage)
    scores.write_text(scores.read_text(encoding="utf-8").replace("0.4", "0.5"), encoding="utf-8")
    with pytest.raises(UserError, match=f"score file {scores} is another than when its table"):
        run(stage, TABLE, OUT)
    assert not OUT.exists()
