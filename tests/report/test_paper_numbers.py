"""The numbers the paper prints, as data: complete, well-formed and true to what is known."""

import csv
import json
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from plans import plan_of

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "config" / "paper"
HEADER = ["block", "row", "column", "accuracy", "interval", "note"]
CELLS_PER_BLOCK = {
    "main": {"CONV-4": 32, "RESNET-12": 30, "WRN-28-10": 24},
    "cub": {"RESNET-18": 2, "RESNET-12": 2, "WRN-28-10": 4},
    "imfs": {"-": 55},
    "ssl100": {"CONV-4": 18, "RESNET-12": 16, "WRN-28-10": 16},
    "sslpart": {"CONV-4": 15},
    "abl": {"CONV-4": 16},
    "ten": {"RESNET-12": 8, "WRN-28-10": 6},
    "nway": {"WRN-28-10": 30},
    "diag": {"RESNET-12": 3},
}
RERUN = "readme-rerun"
BACKBONES = ("CONV-4", "RESNET-12", "WRN-28-10")
COLUMNS = ("mini1", "mini5", "tier1", "tier5")


def read(table):
    with (PAPER / f"{table}.csv").open(newline="", encoding="utf-8") as handle:
        reader = csv.DictReader(handle)
        lines = list(reader)
    assert reader.fieldnames == HEADER
    assert all(None not in line and None not in line.values() for line in lines)
    return lines


def key(line):
    return line["block"], line["row"], line["column"]


def accuracies(table):
    return {key(line): Decimal(line["accuracy"]) for line in read(table)}


@pytest.fixture(scope="module")
def layout():
    return yaml.safe_load((ROOT / "config" / "tables" / "main.yaml").read_text(encoding="utf-8"))


def test_the_nine_tables_hold_277_cells():
    assert sum(len(read(table)) for table in CELLS_PER_BLOCK) == 277


@pytest.mark.parametrize("table", CELLS_PER_BLOCK)
def test_every_block_of_a_table_has_the_printed_number_of_cells(table):
    assert Counter(line["block"] for line in read(table)) == CELLS_PER_BLOCK[table]


def test_cells_stand_once_with_percentages_and_the_printed_decimals():
    for table in (*CELLS_PER_BLOCK, RERUN):
        lines = read(table)
        assert len({key(line) for line in lines}) == len(lines)
        for line in lines:
            assert 0 < Decimal(line["accuracy"]) < 100, line
            one_decimal = line["row"] in {"BatchSGM", "PMN", "LwoF"}
            assert len(line["accuracy"].partition(".")[2]) == (1 if one_decimal else 2), line
            if line["interval"]:
                assert 0 < Decimal(line["interval"]) < 5, line
                assert len(line["interval"].partition(".")[2]) == 2, line


@pytest.mark.parametrize("table", [*CELLS_PER_BLOCK, RERUN])
def test_every_number_stands_in_a_cell_of_a_table(table):
    shown = {
        (block.name, row.paper or row.name, column.name)
        for settings in plan_of("demo").tables.every.values()
        if table in settings.printed
        for block, row, column in settings.places
    }
    assert {key(line) for line in read(table)} <= shown


def test_only_the_gray_cells_are_marked_224_px():
    marked = {
        (table, *key(line))
        for table in CELLS_PER_BLOCK
        for line in read(table)
        if line["note"] == "224 px"
    }
    assert marked == {
        ("main", "RESNET-12", "Robust-20++", "tier1"),
        ("main", "RESNET-12", "Robust-20++", "tier5"),
        ("cub", "RESNET-18", "Robust-20++", "cub1"),
        ("cub", "RESNET-18", "Robust-20++", "cub5"),
    }


def test_all_cells_equal_an_independent_reading_of_the_paper():
    path = os.environ.get("EPCORE_PAPER_CELLS")
    if not path:
        pytest.skip("set EPCORE_PAPER_CELLS to the paper's cells.json to compare all 277 cells")
    ours = {
        "|".join((table, *key(line))): [
            float(line["accuracy"]),
            float(line["interval"]) if line["interval"] else None,
        ]
        for table in CELLS_PER_BLOCK
        for line in read(table)
    }
    assert ours == json.loads(Path(path).read_text(encoding="utf-8"))


def test_the_main_table_has_all_that_is_printed_in_its_order_and_else_rows_of_ours_alone(layout):
    lines = read(layout["paper"])
    assert [block["name"] for block in layout["blocks"]] == list(BACKBONES)
    assert [column["name"] for column in layout["columns"]] == list(COLUMNS)
    assert {line["block"] for line in lines} == set(BACKBONES)
    assert {line["column"] for line in lines} == set(COLUMNS)
    rows = [(block["name"], row) for block in layout["blocks"] for row in block["rows"]]
    printed = list(dict.fromkeys((line["block"], line["row"]) for line in lines))
    described = [(block, row["name"]) for block, row in rows]
    assert [row for row in described if row in printed] == printed  # in this order, none twice
    again = {(line["block"], line["row"]) for line in read(layout["rerun"])}
    assert {(block, row["name"]) for block, row in rows if "source" in row} <= {*printed} | again


def test_the_fully_labeled_column_repeats_the_one_shot_cells_of_the_main_table():
    def cells(table, row, column):
        return [
            (line["accuracy"], line["interval"])
            for line in read(table)
            if key(line) == ("CONV-4", row, column)
        ]

    for name in ("--Net", "EPNet"):
        assert cells("sslpart", f"{name}_SSL", "100") == cells("main", name, "mini1") != []


def test_every_shared_cell_of_the_authors_rerun_lies_below_the_paper():
    again = accuracies(RERUN)
    assert {row for _, row, _ in again} == {"EPNet re-run"}
    rerun = {(block, "EPNet", column): number for (block, _, column), number in again.items()}
    assert len(rerun) == 18
    paper = accuracies("main") | accuracies("cub")
    shared = rerun.keys() & paper.keys()
    assert len(shared) == 16
    assert all(rerun[cell] < paper[cell] for cell in shared)
    assert paper["CONV-4", "EPNet", "mini1"] - rerun["CONV-4", "EPNet", "mini1"] == Decimal("1.91")
