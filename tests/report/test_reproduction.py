"""The reproduction as a document: its numbers are those of the tables, and it typesets."""

import csv
import re
import shutil
from pathlib import Path

import pytest
from test_latex import overfull

from epcore.errors import UserError
from epcore.plan import Plan
from epcore.plan.claim_cells import ClaimCells
from epcore.plan.files import TEMPLATE
from epcore.report import claims, reproduction, table
from epcore.report.text_table import read_cells

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"
BLANK = ROOT / "docs/gap.png"
USED = re.compile(
    r"\\(fact|cell|gap|word|says|whenmade|showtable|showfigure)\{([^{}]*)\}(?:\{(\w+)\})?"
)


@pytest.fixture
def project(fabricate):
    """Tables and claims of fabricated scores at a scale, where the workflow puts them."""

    def build(scale, seeds=None):
        plan = Plan(CONFIG, scale, seeds)
        folder = Path("results") / scale / "tables"
        folder.mkdir(parents=True)
        for name in plan.main_tables:
            stage = plan.tables.stage(name)
            fabricate(stage.cells)
            printed = plan.tables.printed_files(name)
            table.run(stage, folder / f"{name}.csv", *printed or [None])
        stage = plan.claims.stage()
        none = tuple(claim.model_copy(update={"numbers": ()}) for claim in stage.claims)
        claims.run(stage.model_copy(update={"claims": none}), folder / "claims.csv")
        return plan, folder

    return build


def macros_of(plan, folder, footprint=None):
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    tables = {name: read_cells(folder / f"{name}.csv") for name in plan.main_tables}
    text = reproduction.numbers(plan.reproduction(), lines, tables, footprint)
    return dict(re.findall(r"\\csname (.*?)\\endcsname\{(.*)\}", text)), lines, tables


def used():
    """Kind -> names, of all that the prose uses."""
    found = {}
    text = (ROOT / TEMPLATE).read_text(encoding="utf-8").partition(r"\begin{document}")[2]
    for kind, name, more in USED.findall(text):
        found.setdefault(kind, set()).add((name, more))
    return found


def test_numbers_are_those_of_the_tables(project):
    plan, folder = project("demo")
    total = {"hours": "1.23456", "kwh": "0.04567", "kg": "0.0091"}
    known, lines, tables = macros_of(plan, folder, total)
    cell = tables["main"]["CONV-4", "EPNet", "mini1"]
    value, width = float(cell["accuracy"]), float(cell["interval"])
    assert known["cell main/CONV-4/EPNet/mini1"] == rf"${value:.2f}\pm{width:.2f}$"
    gap, width = float(cell["difference"]), float(cell["difference_interval"])
    assert known["gap main/CONV-4/EPNet/mini1"] == rf"${gap:+.2f}\pm{width:.2f}$"
    assert (known["fact hours"], known["fact kwh"]) == ("1.23", "0.0457")
    theirs = [line for line in lines if line["whose"] != "ours"]
    assert known["fact claims"] == str(len(theirs)) == "35"
    assert known["fact printed fails"] == str(sum(c["printed"] == "fails" for c in theirs)) == "13"
    assert all(known[f"word {line['id']} run"] == line["this_run"] for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["demo", "small", "paper"])
def test_the_prose_uses_no_name_that_nothing_has(project, scale):
    """A number that only another scale has is fine; a misspelt one is not."""
    plan, folder = project(scale)
    known, lines, _ = macros_of(plan, folder, {"hours": "1", "kwh": "1", "kg": "1"})
    every = ClaimCells(plan.registry, plan.tables).cells
    ids = {line["id"] for line in lines}
    names = used()
    assert {f"fact {name}" for name, _ in names["fact"]} <= set(known)
    assert {name for kind in ("cell", "gap") for name, _ in names[kind]} <= set(every)
    assert {name for name, _ in names["says"]} <= ids
    assert {verdict for _, verdict in names["says"]} <= set(reproduction.VERDICTS)
    tables = {*Plan(CONFIG, "demo").registry.every_table, "claims", "co2"}
    assert {name for name, _ in names["showtable"]} <= tables


@pytest.mark.slow
@pytest.mark.latex
@pytest.mark.parametrize("seeds", [None, 3])
def test_the_document_typesets(project, seeds):
    if shutil.which("latexmk") is None:
        pytest.skip("latexmk is not installed")
    plan, folder = project("demo", seeds)
    (folder.parent / "figures").mkdir()
    for name in plan.covered_figures:
        shutil.copy(BLANK, folder.parent / f"figures/{name}.pdf")
    (folder / "co2.tex").write_text("A table.\n", encoding="utf-8")
    co2 = folder / "co2.csv"
    co2.write_text("level,hours,kwh,kg\ntotal,1.5,0.1,0.02\n", encoding="utf-8")
    out = Path("reproduction.pdf")
    tables = [folder / f"{name}.csv" for name in plan.main_tables]
    stage = plan.reproduction()
    drawn = stage.model_copy(update={"figures": ()})  # what is drawn here is no PDF
    reproduction.run(drawn, ROOT / TEMPLATE, folder / "claims.csv", tables, out, co2)
    assert out.read_bytes().startswith(b"%PDF")
    assert max(overfull("reproduction.log"), default=0) <= 5
    log = Path("reproduction.log").read_text(errors="replace")
    assert "undefined" not in log
    first = out.read_bytes()
    reproduction.run(drawn, ROOT / TEMPLATE, folder / "claims.csv", tables, out, co2)
    assert out.read_bytes() == first


def test_without_latex_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="latexmk is missing: install LaTeX"):
        reproduction.compile_pdf(ROOT / TEMPLATE, "", [], tmp_path / "x.pdf")


@pytest.mark.latex
def test_a_text_that_latex_refuses_leaves_its_log(tmp_path):
    if shutil.which("latexmk") is None:
        pytest.skip("latexmk is not installed")
    (tmp_path / "text.tex").write_text(r"\nonsense", encoding="utf-8")
    with pytest.raises(UserError, match=r"could not typeset .*text\.tex; its log is .*x\.log"):
        reproduction.compile_pdf(tmp_path / "text.tex", "", [], tmp_path / "x.pdf")
    assert "nonsense" in (tmp_path / "x.log").read_text(errors="replace")
    assert not (tmp_path / "x.pdf").exists()
