"""ImageNet-FS's tables: printed rows above ours, one number a cell, differences below."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from figure_files import compiled, overfull
from plans import plan_of

CONFIG = Path(__file__).parents[2] / "config"
NAMES = ["imagenetfs", "imagenetfs-prior", "imagenetfs-variants"]


def lines_of(text, label):
    """The cells of the lines that begin with a label, sources left out."""
    lines = [re.sub(r"\\textsuperscript\{\d+\}", "", line) for line in text.splitlines()]
    found = [line.removesuffix(r" \\").split(" & ") for line in lines]
    return [cells[1:] for cells in found if cells[0] == label]


def number(values):
    """As the cited code: 1.96 deviations, with n in the denominator, over sqrt(n)."""
    half = 1.96 * values.std() / np.sqrt(len(values))
    return rf"{values.mean():.2f}\ci{{{half:.2f}}}"


def differences(text, name):
    """Row -> its line of differences, in the one block of the demo."""
    rows = plan_of("demo").tables.table(name).imagenet_fs.rows
    compared = [row.name for row in rows if row.baseline]
    return dict(zip(compared, lines_of(text, r"\quad\emph{difference}"), strict=True))


def test_every_printed_cell_stands_in_its_row_as_printed(typeset):
    text, _ = typeset("imagenetfs")
    with (CONFIG / "paper" / "imfs.csv").open(newline="", encoding="utf-8") as file:
        printed = list(csv.DictReader(file))
    labels = {"BatchSGM": "Batch SGM", "CC+Rot": "CC + Rot", "wDAE-GNN+EP": "wDAE-GNN + EP"}
    columns = [f"{measure}{k}" for measure in ("nov", "all") for k in (1, 2, 5, 10, 20)]
    for row in dict.fromkeys(line["row"] for line in printed):
        shown = lines_of(text, labels.get(row, row))[0]
        assert len(shown) == 10
        cells = {line["column"]: line for line in printed if line["row"] == row}
        for column, entry in zip(columns, shown, strict=True):
            cell = cells.get(column)
            expected = cell["accuracy"] if cell else "--"
            assert entry == expected + (
                rf"\ci{{{cell['interval']}}}" if cell and cell["interval"] else ""
            )


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_our_rows_stand_below_for_each_run_with_the_cited_codes_interval(typeset, scale):
    text, scores = typeset("imagenetfs", scale)
    blocks = list(dict.fromkeys(block for block, _, _ in scores))
    shown = lines_of(text, "LwoF, attention")
    assert len(shown) == len(blocks) == (1 if scale == "demo" else 4)
    for block, entries in zip(blocks, shown, strict=True):
        expected = [v for (b, row, _), v in scores.items() if (b, row) == (block, "lwof-attention")]
        assert entries == [number(100 * values) for values in expected]


def test_the_difference_to_wdae_is_paired_and_stands_below_its_row(typeset):
    text, scores = typeset("imagenetfs")
    entries = differences(text, "imagenetfs")["wdae-gnn-ep"]
    block = next(iter(scores))[0]
    of = {
        method: [100 * v for (_, row, _), v in scores.items() if row == method]
        for method in ("wdae-gnn", "wdae-gnn-ep")
    }
    for entry, one, other in zip(entries, of["wdae-gnn-ep"], of["wdae-gnn"], strict=True):
        gap = one - other
        half = 1.96 * gap.std() / np.sqrt(len(gap))
        assert entry == rf"${gap.mean():+.2f}$\ci{{{half:.2f}}}"
    assert block == "glyph-large, resnet10"


def test_the_variants_have_a_difference_each_and_no_printed_row(typeset):
    text, scores = typeset("imagenetfs-variants")
    rows = {row for _, row, _ in scores}
    assert rows > {"wdae-gnn", "wdae-gnn-ep", "wdae-gnn-ep-normalized"}
    variants = {row for row in rows if row.startswith("wdae-gnn-ep")}
    assert differences(text, "imagenetfs-variants").keys() >= variants
    assert "As printed" not in text


@pytest.mark.latex
@pytest.mark.parametrize("name", NAMES)
def test_every_table_compiles_and_is_no_wider_than_the_page(typeset, name):
    typeset(name, "paper" if name == "imagenetfs" else "demo")
    compiled(f"{name}.tex")
    assert max(overfull(f"{name}.log"), default=0) <= 10
