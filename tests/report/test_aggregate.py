"""The long form of a table: our means beside the paper's numbers, each as it was."""

import hashlib
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from figure_files import lines_of
from plans import plan_of
from scipy import stats
from score_files import write_classifier

from epcore.errors import UserError
from epcore.files import meta_of
from epcore.footprint.rows import file_of, record
from epcore.report import aggregate
from epcore.report.config import Training
from epcore.report.scores import read_scores, reading_classifier
from epcore.report.table import run
from epcore.report.text_table import CELLS, by_seed, read_tests

ROOT = Path(__file__).parents[2]
CONFIG, EPCORE = ROOT / "config", ROOT / "epcore"


@pytest.fixture
def table(table_stage, scores, paper):
    """The lines of the written file as (block, row, column) -> line, and their columns."""
    run(table_stage, [paper], Path("main.csv"))
    return read(Path("main.csv"))


def read(path):
    lines = {(line["block"], line["row"], line["column"]): line for line in lines_of(path)}
    return lines, list(next(iter(lines.values())))


def test_our_numbers_have_four_decimals_and_counts_have_none(table):
    for line in table[0].values():
        if line["accuracy"]:
            assert re.fullmatch(r"\d+\.\d{4} \d+\.\d{4}", f"{line['accuracy']} {line['interval']}")
            assert line["episodes"] == "40"
            assert line["parameters"].isdecimal()


def test_there_is_one_line_per_cell_in_the_order_of_the_table(table, table_stage):
    lines, columns = table
    assert {*CELLS} <= {*columns}
    places = [(b.name, r.name, c.name) for b, r, c in table_stage.table.places]
    assert list(lines) == places
    assert {line["table"] for line in lines.values()} == {"main"}


def test_every_printed_number_keeps_its_decimals(table, paper):
    lines, _ = table
    printed = lines_of(paper)
    for cell in printed:
        line = lines[cell["block"], cell["row"], cell["column"]]
        assert line["paper_accuracy"] == cell["accuracy"]
        assert line["paper_interval"] == cell["interval"]
        assert line["note"] == cell["note"]
    assert lines["CONV-4", "MAML", "mini1"]["paper_accuracy"] == "48.70"
    assert sum(line["paper_accuracy"] != "" for line in lines.values()) == len(printed)


def test_our_numbers_are_those_of_the_scores_in_percent(table, scores):
    lines, _ = table
    for place, accuracies in scores.items():
        percent = 100 * accuracies
        low, high = stats.t.interval(0.95, 39, loc=percent.mean(), scale=stats.sem(percent))
        assert float(lines[place]["accuracy"]) == pytest.approx(percent.mean(), abs=2e-4)
        assert float(lines[place]["interval"]) == pytest.approx((high - low) / 2, abs=2e-4)
        assert lines[place]["episodes"] == "40"


def test_a_row_of_the_literature_has_a_source_and_no_number_of_ours(table, table_stage):
    lines, _ = table
    for block, row, column in table_stage.table.places:
        line = lines[block.name, row.name, column.name]
        numbers = ("accuracy", "interval", "episodes", "parameters")
        ours = {line[name] != "" for name in (*numbers, "dataset", "backbone", "protocol")}
        assert ours == {row.recipe is not None}
        assert line["recipe"] == (row.recipe or "")
        assert line["source"].startswith(row.source or f"this run, recipe {row.recipe}")
    assert lines["CONV-4", "GNN", "mini1"]["source"].startswith("Garcia and Bruna")
    assert lines["CONV-4", "GNN", "mini1"]["paper_parameters"] == "1619K"
    assert lines["CONV-4", "GNN", "tier1"]["paper_accuracy"] == ""
    ours = lines["CONV-4", "--Net", "tier5"]
    assert ours["source"] == "this run, recipe net"
    run = ("recipe", "backbone", "dataset", "protocol")
    assert [ours[name] for name in run] == ["net", "conv4", "glyph-tiered", "5way-5shot"]


def test_parameters_are_those_of_the_checkpoint(table, table_stage):
    lines, _ = table
    for cell in table_stage.cells:
        facts = json.loads(Path(cell.checkpoint_meta).read_text(encoding="utf-8"))
        line = lines[cell.block, cell.row, cell.column]
        assert line["parameters"] == str(facts["parameters"])
    assert len({line["parameters"] for line in lines.values()}) > 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("CONV-4,MAML,mini1,48.70,1.84,", ": CONV-4, MAML, mini1 is there twice; delete one"),
        ("CONV-4,GNN,tier1,61.00%,0.50,", ": CONV-4, GNN, tier1: expected a number .* '61.00%'"),
        ("CONV-4,GNN,tier1,61,00,0,50,", " cannot be read .line {last} has too few or too many"),
    ],
)
def test_a_wrong_line_of_printed_numbers_is_named(table_stage, scores, paper, tmp_path, line, said):
    own = tmp_path / "numbers.csv"
    text = paper.read_text(encoding="utf-8")
    own.write_text(f"{text}{line}\n", encoding="utf-8")
    message = f"{own}{said.format(last=len(text.splitlines()) + 1)}"
    with pytest.raises(UserError, match=message):
        run(table_stage, [own], Path("main.csv"))
    assert not Path("main.csv").exists()


def test_a_missing_score_file_is_named_in_one_line(table_stage, scores, paper):
    path = Path(table_stage.cells[5].scores.file)
    path.unlink()
    with pytest.raises(UserError, match=f"^input {path} does not exist; make it first"):
        run(table_stage, [paper], Path("main.csv"))


def test_the_meta_of_a_table_leads_back_to_the_files_of_every_cell(table_stage, scores, paper):
    run(table_stage, [paper], Path("main.csv"))
    inputs = json.loads(Path("main.meta.json").read_text(encoding="utf-8"))["inputs"]
    for cell in table_stage.cells:
        content = Path(cell.scores.file).read_bytes()
        assert inputs[cell.scores.file] == hashlib.sha256(content).hexdigest()
        assert cell.checkpoint_meta in inputs


# -- differences, and tables of another kind -------------------------------------------------------

DIFFERENCE = ("baseline", "difference", "difference_interval")


@pytest.fixture
def built(fabricate):
    """What a demo's scores make of a table: built("placement") -> its lines, its scores."""

    def build(name):
        plan = plan_of("both")
        stage = plan.tables.stage(name)
        scores = fabricate(stage.cells)
        run(stage, list(map(Path, plan.tables.printed_files(name))), Path("table.csv"))
        return read(Path("table.csv"))[0], scores

    return build


def test_a_difference_is_to_the_named_row_over_the_same_episodes(table, table_stage, scores):
    lines, _ = table
    assert {line["row"] for line in lines.values() if line["baseline"]} >= {"EPNet"}
    for block, row, column in table_stage.table.places:
        found = [lines[block.name, row.name, column.name][name] for name in DIFFERENCE]
        if row.baseline is None or row.recipe is None:  # the scale does not train that method
            assert found == [""] * 3
            continue
        names = (row.name, row.baseline)
        ours, others = (100 * scores[block.name, name, column.name] for name in names)
        low, high = stats.ttest_rel(ours, others).confidence_interval(0.95)
        assert found[0] == row.baseline
        assert float(found[1]) == pytest.approx(np.mean(ours - others), abs=2e-4)
        assert float(found[2]) == pytest.approx((high - low) / 2, abs=2e-4)


def test_a_table_that_the_paper_does_not_have_has_no_number_of_the_paper(built):
    lines, scores = built("placement")
    assert lines.keys() == scores.keys()
    for line in lines.values():
        assert line["accuracy"] != ""
        assert {line[name] for name in CELLS if name.startswith("paper")} == {""}


def test_the_rerun_of_the_authors_is_a_row_as_they_print_it(built):
    shown = {}
    for name in ("main", "cub"):
        lines, _ = built(name)
        for place, line in lines.items():
            if place[1] == "EPNet re-run":
                shown[place] = (line["paper_accuracy"], line["paper_interval"])
                assert line["accuracy"] == ""
    printed = {
        (line["block"], line["row"], line["column"]): (line["accuracy"], line["interval"])
        for line in lines_of(CONFIG / "paper" / "readme-rerun.csv")
    }
    assert shown == printed
    assert shown["CONV-4", "EPNet re-run", "mini1"] == ("57.41", "0.85")


def test_rows_may_share_a_row_of_the_paper(built):
    """20 or 100 unlabeled images of a class: the paper prints one number, it stands at both."""
    lines, _ = built("ssl-large")
    for number in (20, 100):
        assert lines["CONV-4", f"EPNet_SSL {number}", "mini1"]["paper_accuracy"] == "65.13"
        assert lines["CONV-4", f"--Net_SSL {number}", "tier1"]["paper_accuracy"] == "65.01"
    assert lines["WRN-28-10", "EPNet", "mini5"]["paper_accuracy"] == "84.34"


def test_a_block_without_a_backbone_is_of_the_literature(built):
    lines, scores = built("cub")
    assert {block for block, _, _ in scores} == {"CONV-4", "RESNET-12", "WRN-28-10"}
    assert lines["RESNET-18", "Robust-20++", "cub5"]["paper_accuracy"] == "83.21"
    assert lines["RESNET-18", "Robust-20++", "cub5"]["accuracy"] == ""


# -- what trainings cost ---------------------------------------------------------------------------

ENERGY = Path("results/mine/energy")


def cost(folder, **facts):
    checkpoint = folder / "pretraining.pt"
    folder.mkdir(exist_ok=True)
    meta_of(checkpoint).write_text(json.dumps(facts), encoding="utf-8")
    names = {"seed": 0, "recipe": "epnet", "phase": "pretraining", "trained_as": "epnet"}
    return Training(**names, checkpoint=str(checkpoint))


def test_the_cost_of_a_checkpoint_is_that_of_all_its_trainings(tmp_path):
    told = [(100, 0.5), (10, 0.25)]  # two phases
    made = [
        cost(tmp_path / str(place), seconds=seconds, energy={"kwh": kwh})
        for place, (seconds, kwh) in enumerate(told)
    ]
    assert aggregate.costs(made, ENERGY) == {"training_seconds": 110, "training_kwh": 0.75}
    assert aggregate.costs([], ENERGY) == {}


@pytest.mark.parametrize("went_on", [3, {"": None, "b": 0}])
def test_a_training_that_went_on_counts_with_its_attempts_before(
    tmp_path, monkeypatch, attempt, went_on
):
    monkeypatch.chdir(tmp_path)
    (folder := Path("results/mine/models")).mkdir(parents=True)
    job = str(folder / "pretraining.pt")
    used = {"job": job, "seconds": 100, "cpu_kwh": 0.5, "ram_kwh": 0}
    states = {"0": "finished", "1": "running", "2": "interrupted", "last": "finished"}
    for hour, (name, state) in enumerate(states.items()):
        record(ENERGY, attempt(attempt=name, at=str(hour), state=state, **used))
    facts = {"seconds": 7, "energy": {"kwh": 0.25, "attempt": "last", "job": job}}
    alone = cost(folder, **facts, resumed_from_epoch=None)
    assert aggregate.costs([alone], ENERGY) == {"training_seconds": 7.0, "training_kwh": 0.25}
    continued = cost(folder, **facts, resumed_from_epoch=went_on)
    told = {"training_seconds": 207.0, "training_kwh": 1.25}
    assert aggregate.costs([continued], ENERGY) == told
    file_of(ENERGY, job).unlink()
    assert aggregate.costs([continued], ENERGY) == {
        "training_seconds": 7.0,
        "training_kwh": 0.25,
    }


@pytest.mark.parametrize("without", [{"seconds": 3}, {"seconds": 3, "energy": {"kwh": None}}])
def test_energy_that_was_not_measured_once_is_not_told(tmp_path, without):
    made = [
        cost(tmp_path / "a", seconds=1, energy={"kwh": 2}),
        cost(tmp_path / "b", **without),
    ]
    assert aggregate.costs(made, ENERGY) == {"training_seconds": 4.0}


# -- several trainings -----------------------------------------------------------------------------


def test_with_several_seeds_a_line_has_means_and_intervals_over_trainings(fabricate):
    plan = plan_of("demo", 3)
    stage = plan.tables.stage("main")
    fabricate(stage.cells)
    run(stage, [CONFIG / "paper" / "main.csv"], Path("main.csv"))
    cells = {(c.block, c.row, c.column, c.seed): c for c in stage.cells}

    def means(place):
        files = [cells[*place, seed].scores.file for seed in (0, 1, 2)]
        return [
            100 * np.mean([float(line["accuracy"]) for line in lines_of(Path(f))]) for f in files
        ]

    lines, _ = read(Path("main.csv"))
    tests = read_tests(by_seed(Path("main.csv")))
    ours = {place: line for place, line in lines.items() if line["accuracy"]}
    assert len(ours) * 3 == len(stage.cells)
    for (block, row, column), line in ours.items():
        here = means((block, row, column))
        told = tests[block, row, column]
        assert [line["seed"] for line in told] == ["0", "1", "2"]
        numbers = {"": ("accuracy", "interval", here)}
        if line["baseline"]:
            other = means((block, line["baseline"], column))
            gaps = [one - two for one, two in zip(here, other, strict=True)]
            numbers["gap"] = ("difference", "difference_interval", gaps)
        for mean, interval, of_seeds in numbers.values():
            low, high = stats.t.interval(0.95, 2, np.mean(of_seeds), stats.sem(of_seeds))
            assert float(line[mean]) == pytest.approx(np.mean(of_seeds), abs=1e-4)
            assert float(line[interval]) == pytest.approx((high - low) / 2, abs=1e-3)
            assert [float(line[mean]) for line in told] == pytest.approx(of_seeds, abs=1e-4)
        assert (line["seeds"], line["episodes"]) == ("3", "40"), row


@pytest.mark.slow
def test_what_classifiers_assume_and_which_settings_were_chosen_comes_from_their_metas(fabricate):
    """The fixture says so of some cells, for each seed other settings."""
    stage = plan_of("demo", seeds=2).tables.stage("classifiers")
    fabricate(stage.cells)
    run(stage, [], Path("table.csv"))
    assert {line["assumes"] for line in lines_of(Path("table.csv"))} == {"T B"}
    told = defaultdict(set)
    for cell in stage.cells:
        with reading_classifier(cell.scores) as facts:
            accuracy = facts["validation_accuracy"]
            chosen = f"cost {facts['chosen']['cost']:g}, steps 3" if facts["chosen"] else ""
            place = (cell.block, cell.row, cell.column, str(cell.seed))
            told[place] = (chosen, f"{100 * accuracy:g}" if chosen else "")
    lines = lines_of(Path("table-by-seed.csv"))
    assert len(lines) == len(told)
    for line in lines:
        place = (line["block"], line["row"], line["column"], line["seed"])
        assert (line["chosen"], line["validation_accuracy"]) == told[place]


def test_a_line_names_its_score_file_and_what_that_held(fabricate):
    stage = plan_of("demo", seeds=2).tables.stage("classifiers-ssl")
    fabricate(stage.cells)
    run(stage, [], Path("table.csv"))
    for line, cell in zip(lines_of(Path("table-by-seed.csv")), stage.cells, strict=True):
        assert (line["scores"], line["score_column"]) == (cell.scores.file, cell.scores.column)
        assert line["sha256"] == hashlib.sha256(Path(line["scores"]).read_bytes()).hexdigest()


@pytest.mark.slow
def test_seconds_of_a_classifier_are_means_over_seeds_and_in_print_over_columns(fabricate):
    """Only where the table has them: they are of this run alone."""
    stage = plan_of("demo", seeds=2).tables.stage("classifiers")
    fabricate(stage.cells)
    run(stage, [], Path("table.csv"))
    told = defaultdict(list)
    for cell in stage.cells:
        with reading_classifier(cell.scores) as facts:
            told[cell.block, cell.row, cell.column].append(facts["seconds_per_1000_episodes"])
    for line in lines_of(Path("table.csv")):
        found = told[line["block"], line["row"], line["column"]]
        assert float(line["seconds_per_1000_episodes"]) == pytest.approx(np.mean(found), abs=1e-4)
    by_row = [seconds for key, seconds in told.items() if key[:2] == ("--Net", "ridge")]
    text = Path("table.tex").read_text(encoding="utf-8")
    (ridge, _) = re.findall(r"^ridge regression \(R2-D2\) & [^&]* & ([^&]+) &", text, re.M)
    assert ridge.strip() == f"{np.mean(by_row):.1f}"
    assert "another run has others" in text
    other = plan_of("demo").tables.stage("with-ep")
    fabricate(other.cells)
    run(other, [], Path("other.csv"))
    assert {line["seconds_per_1000_episodes"] for line in lines_of(Path("other.csv"))} == {""}


def test_a_method_whose_time_is_not_measured_has_none(fabricate):
    stage = plan_of("demo").tables.stage("classifiers")
    fabricate(stage.cells)
    first = stage.cells[0].scores
    without = {(c.block, c.row, c.column) for c in stage.cells if c.scores == first}
    write_classifier(first, {"assumes": "", "made": {}})
    run(stage, [], Path("table.csv"))
    for line in lines_of(Path("table.csv")):
        own = (line["block"], line["row"], line["column"]) in without
        assert bool(line["seconds_per_1000_episodes"]) != own


def test_a_difference_to_a_recipe_that_the_table_does_not_show(fabricate):
    stage = plan_of("demo").tables.stage("with-ep")
    scores = fabricate(stage.cells)
    run(stage, [], Path("table.csv"))
    lines, _ = read(Path("table.csv"))
    cell = next(cell for cell in stage.cells if (cell.block, cell.row) == ("--Net", "ridge"))
    line = lines[cell.block, cell.row, cell.column]
    others = read_scores(cell.baseline)
    gap = 100 * scores[cell.block, cell.row, cell.column] - others
    assert float(line["difference"]) == pytest.approx(gap.mean(), abs=1e-3)
    assert line["baseline"] == f"net+{cell.row}"
    made = json.loads(Path("table.meta.json").read_text(encoding="utf-8"))
    assert cell.baseline.file in made["inputs"]
    assert str(meta_of(Path(cell.scores.file))) in made["inputs"]
