"""The long form of a table: our means beside the paper's numbers, each as it was."""

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from epcore.errors import UserError
from epcore.report import aggregate

COLUMNS = [
    "table",
    "block",
    "row",
    "column",
    "accuracy",
    "interval",
    "episodes",
    "parameters",
    "paper_accuracy",
    "paper_interval",
    "paper_parameters",
    "note",
    "source",
]


@pytest.fixture
def table(aggregate_stage, scores, paper):
    """The lines of the written file as (block, row, column) -> line, and their columns."""
    aggregate.run(aggregate_stage, paper, Path("main.csv"))
    with Path("main.csv").open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        lines = {(line["block"], line["row"], line["column"]): line for line in reader}
    return lines, reader.fieldnames


def test_there_is_one_line_per_cell_in_the_order_of_the_table(table, aggregate_stage):
    lines, columns = table
    assert columns == COLUMNS
    places = [(r.block, r.row, c) for r in aggregate_stage.rows for c in aggregate_stage.columns]
    assert list(lines) == places
    assert {line["table"] for line in lines.values()} == {"main"}


def test_every_printed_number_keeps_its_decimals(table, paper):
    lines, _ = table
    with paper.open(newline="", encoding="utf-8") as file:
        printed = list(csv.DictReader(file))
    assert len(printed) == 86
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


def test_a_row_of_the_literature_has_a_source_and_no_number_of_ours(table, scores):
    lines, _ = table
    assert len(scores) == 24
    for place in lines.keys() - scores.keys():
        ours = [lines[place][name] for name in ("accuracy", "interval", "episodes", "parameters")]
        assert ours == [""] * 4
    assert lines["CONV-4", "GNN", "mini1"]["source"].startswith("Garcia and Bruna")
    assert lines["CONV-4", "GNN", "mini1"]["paper_parameters"] == "1619K"
    assert lines["CONV-4", "GNN", "tier1"]["paper_accuracy"] == ""
    assert lines["CONV-4", "--Net", "mini1"]["source"] == "this run, recipe net"


def test_parameters_are_those_of_the_checkpoint(table, aggregate_stage):
    lines, _ = table
    for number, cell in enumerate(aggregate_stage.cells):
        line = lines[cell.block, cell.row, cell.column]
        assert line["parameters"] == str(112_832 + 1000 * number)


def test_the_same_scores_give_the_same_bytes(aggregate_stage, scores, paper):
    for name in ("one.csv", "two.csv"):
        aggregate.run(aggregate_stage, paper, Path(name))
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()


DAMAGED = {
    "empty": b"",
    "only a header": b"episode,accuracy\n",
    "one episode": b"episode,accuracy\n0,0.5\n",
    "another column": b"episode,score\n0,0.5\n1,0.5\n",
    "in percent": b"episode,accuracy\n0,50.0\n1,60.0\n",
    "negative": b"episode,accuracy\n0,0.5\n1,-0.5\n",
    "a hole": b"episode,accuracy\n0,0.5\n1,\n2,0.5\n",
    "nan": b"episode,accuracy\n0,0.5\n1,nan\n",
    "words": b"episode,accuracy\n0,0.5\n1,half\n",
    "ragged": b"episode,accuracy\n0,0.5\n1,0.5,3,4\n",
    "noise": np.random.default_rng(0).bytes(500),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_score_file_is_named_in_one_line(aggregate_stage, scores, paper, how):
    path = Path(aggregate_stage.cells[5].scores)
    path.write_bytes(DAMAGED[how])
    with pytest.raises(UserError) as caught:
        aggregate.run(aggregate_stage, paper, Path("main.csv"))
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"score file {path} is damaged (")
    assert message.endswith("delete it and run the same command again")
    assert not Path("main.csv").exists()


@pytest.mark.parametrize("content", [None, "", "{", "[1]", '{"seconds": 3}'])
def test_a_damaged_meta_file_is_named_in_one_line(aggregate_stage, scores, paper, content):
    path = Path(aggregate_stage.cells[7].checkpoint_meta)
    if content is None:
        path.unlink()
    else:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        aggregate.run(aggregate_stage, paper, Path("main.csv"))
    assert len(str(caught.value).splitlines()) == 1
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [None, "", "block,row\nCONV-4,MAML\n", 'a,b\n"1,2,3\n4'])
def test_damaged_numbers_of_the_paper_are_named_in_one_line(
    aggregate_stage, scores, tmp_path, content
):
    path = tmp_path / "numbers.csv"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        aggregate.run(aggregate_stage, path, Path("main.csv"))
    assert len(str(caught.value).splitlines()) == 1
    assert str(path) in str(caught.value)


def test_a_missing_score_file_is_named_in_one_line(aggregate_stage, scores, paper):
    path = Path(aggregate_stage.cells[5].scores)
    path.unlink()
    with pytest.raises(UserError, match=f"^input {path} does not exist; run the stage"):
        aggregate.run(aggregate_stage, paper, Path("main.csv"))


def test_the_meta_of_a_table_leads_back_to_the_files_of_every_cell(aggregate_stage, scores, paper):
    aggregate.run(aggregate_stage, paper, Path("main.csv"))
    inputs = json.loads(Path("main.meta.json").read_text(encoding="utf-8"))["inputs"]
    for cell in aggregate_stage.cells:
        content = Path(cell.scores).read_bytes()
        assert inputs[cell.scores] == hashlib.sha256(content).hexdigest()
        assert cell.checkpoint_meta in inputs
