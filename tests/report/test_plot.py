"""Result plots: every number drawn is one of the tables', and differences are paired."""

import json
from contextlib import chdir, contextmanager
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import pandas as pd
import pytest
from figure_files import draw_in_another_process, fonts_of, lines_of, same_files, words_of
from plans import plan_of
from scipy import stats
from score_files import write_results

from epcore.report import plot
from epcore.report.figure import facets
from epcore.report.scores import read_scores
from epcore.report.table import run

CONFIG = Path(__file__).parents[2] / "config"
NAMES = ("by-shot", "by-way", "by-unlabeled")


def is_written(scores):
    return Path(scores.file).exists() and scores.column in pd.read_csv(scores.file)


def draw(name):
    """Draws a plot of fabricated scores into the working directory.

    Returns its stage, its lines and the scores of cells.
    """
    plan = plan_of("both")
    scores, files = {}, []
    for table in plan.plots.tables(name):
        stage = plan.tables.stage(table)
        # By file, because the score files of an earlier table stand.
        write_results([cell for cell in stage.cells if not is_written(cell.scores)])
        for cell in stage.cells:
            scores[table, cell.block, cell.row, cell.column] = read_scores(cell.scores)
            if not Path(cell.checkpoint_meta).exists():
                Path(cell.checkpoint_meta).write_text('{"parameters": 1}', encoding="utf-8")
        printed = plan.tables.table(table).paper
        papers = [CONFIG / "paper" / f"{printed}.csv"] if printed else []
        run(stage, papers, Path(f"{table}.csv"))
        files.append(Path(f"{table}.csv"))
    stage = plan.plots.plot(name)
    plot.run(stage, files, Path(f"{name}.pdf"))
    return stage, lines_of(Path(f"{name}.csv")), scores


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """Each plot in a folder of its own, drawn once for all tests that only look at it."""

    @cache
    def build(name):
        folder = tmp_path_factory.mktemp(name)
        with chdir(folder):
            return folder, *draw(name)

    return build


@pytest.fixture
def drawn(once, monkeypatch):
    """drawn("by-shot") -> what `draw` returns, in the folder of its files."""

    def show(name):
        folder, *found = once(name)
        monkeypatch.chdir(folder)
        return found

    return show


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_the_mean_of_the_scores_of_its_cell_with_its_interval(drawn, name):
    stage, lines, scores = drawn(name)
    assert len(lines) == len(stage.points) > 5
    for point, line in zip(stage.points, lines, strict=True):
        values = scores[point.table, point.block, point.row, point.column]
        low, high = stats.t.interval(0.95, 39, loc=values.mean(), scale=stats.sem(values))
        assert float(line["accuracy"]) == pytest.approx(values.mean(), abs=1e-4)
        assert float(line["interval"]) == pytest.approx((high - low) / 2, abs=1e-4)
        assert (line["x"], line["series"]) == (str(point.x), point.series)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "line", "beside"),
    [("by-way", "EPNet", True), ("classifiers-by-shot", "PT-MAP", False)],
)
def test_only_beside_lines_of_the_paper_are_ours_called_this_run(drawn, name, line, beside):
    drawn(name)
    words = words_of(Path(f"{name}.pdf"))
    assert line in words
    assert (f"{line}, this run" in words) is beside


def test_differences_are_of_epnet_to_net_over_the_same_episodes(drawn):
    _, lines, scores = drawn("by-unlabeled")
    found = {
        (line["dataset"], line["episodes"], int(line["x"])): line
        for line in lines
        if line["difference"] and line["backbone"] == "Conv-4"
    }
    shots = ("5-way 1-shot", "5-way 5-shot")
    for dataset, episodes, x in product(("mini", "tiered"), shots, (0, 20, 100)):
        line = found[dataset, episodes, x]
        column = {"mini": "mini", "tiered": "tier"}[dataset] + episodes[6]
        ending = f"_SSL {x}" if x else ""
        table = "ssl-large" if x else "main"
        ours = [scores[table, "CONV-4", f"{row}{ending}", column] for row in ("EPNet", "--Net")]
        low, high = stats.ttest_rel(*ours).confidence_interval(0.95)
        assert float(line["difference"]) == pytest.approx((low + high) / 2, abs=1e-4)
        assert float(line["difference_interval"]) == pytest.approx((high - low) / 2, abs=1e-4)
        assert (line["series"], line["baseline"]) == ("EPNet", "--Net")


def printed(lines, **chosen):
    (line,) = (x for x in lines if all(x[name] == value for name, value in chosen.items()))
    return line


def test_the_papers_numbers_stand_beside_ours_as_its_tables_have_them(drawn):
    """tab:main, tab:10shot and tab:n-way of the paper, read by eye."""
    _, lines, _ = drawn("by-shot")
    conv = {"backbone": "Conv-4", "dataset": "mini", "x": "1"}
    epnet, net = (printed(lines, series=name, **conv) for name in ("EPNet", "--Net"))
    assert (epnet["paper_accuracy"], epnet["paper_interval"]) == ("59.3200", "0.8800")
    assert (net["paper_accuracy"], net["paper_interval"]) == ("57.1800", "0.8300")
    ten = printed(lines, series="EPNet", backbone="ResNet-12 ×1/8", dataset="tiered", x="10")
    assert (ten["paper_accuracy"], ten["table"]) == ("88.3900", "ten-shot")
    _, lines, _ = drawn("by-way")
    twenty = printed(lines, series="EPNet", episodes="5-shot", x="20")
    assert twenty["paper_accuracy"] == "59.0100"
    assert twenty["difference"] == ""


def test_the_papers_one_number_for_100_unlabeled_stands_at_both_readings(drawn):
    _, lines, _ = drawn("by-unlabeled")
    wanted = {"backbone": "Conv-4", "dataset": "mini", "episodes": "5-way 1-shot"}
    both = {printed(lines, series="EPNet", x=x, **wanted)["paper_accuracy"] for x in ("20", "100")}
    assert both == {"65.1300"}
    assert "drawn at 20 and at 100 per class" in words_of("by-unlabeled.pdf")


@pytest.mark.parametrize("name", NAMES)
def test_words_and_numbers_of_a_plot_are_text(drawn, name):
    stage, lines, _ = drawn(name)
    words = words_of(f"{name}.pdf")
    for said in ("EPNet, this run", "--Net, paper", "accuracy, %", stage.label, "Scale both."):
        assert said in words
    for line in lines:
        if line["difference"]:
            assert f"{float(line['difference']):+.1f}".replace("-", "−") in words


def test_the_fonts_of_a_figure_are_embedded(drawn):
    drawn("by-shot")
    fonts = fonts_of("by-shot.pdf")
    assert fonts
    assert all(kind.endswith("TrueType") and embedded == "yes" for kind, embedded in fonts)


@pytest.mark.slow
def test_the_sizes_of_networks_stand_beside_their_rows_and_not_on_each_other(tmp_path, monkeypatch):
    placed = []

    @contextmanager
    def placing(*arguments, **more):
        with facets(*arguments, **more) as grid:
            yield grid
            placed.extend(row[-1].texts[0] for row in grid.axes)

    monkeypatch.setattr(plot, "facets", placing)
    monkeypatch.chdir(tmp_path)
    draw("by-shot")
    assert [" ".join(label.get_text().split()) for label in placed] == [
        "Conv-4",
        "ResNet-12 ×1/8",
        "WRN-28-10 ×1/5, depth ×1/4",
    ]
    placed[0].figure.draw_without_rendering()
    for above, below in pairwise(label.get_window_extent() for label in placed):
        assert above.y0 > below.y1


@pytest.mark.slow
def test_a_plot_is_the_same_bytes_in_another_process_and_says_what_it_is_made_of(drawn):
    stage, _, _ = drawn("by-shot")
    tables = ("main.csv", "cub.csv", "ten-shot.csv")
    draw_in_another_process("plot", stage, "two.pdf", tables=tables)
    same_files("by-shot", "two")
    facts = json.loads(Path("by-shot.meta.json").read_text(encoding="utf-8"))
    assert facts["inputs"].keys() == set(tables)
