"""The reproduction as a document: its numbers are those of the tables, and it typesets."""

import csv
import re
import shutil
from pathlib import Path

import pytest
from figure_files import overfull
from plans import plan_of

from epcore.errors import UserError
from epcore.files import Provenance
from epcore.report import claims, reproduction, table
from epcore.report.figure import figure
from epcore.report.text_table import read_cells

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "workflow/report/reproduction.tex"
# Width and height of those that the document shows, in inches.
FIGURES = {
    "ablation": (4.8, 3.4),
    "two-moons": (4.8, 2.6),
    "decision-boundary": (4.8, 2.7),
    "interpolation": (4.8, 5),
    "speed": (5.6, 5.2),
    "per-episode": (5.6, 5.2),
}
USED = re.compile(r'\b(cell|gap|says|when_made|show_table|show_figure)\("([^"]*)"(?:, "(\w+)")?')


@pytest.fixture
def project(fabricate):
    """Tables and claims of fabricated scores at a scale, where the workflow puts them."""

    def build(scale, seeds=None):
        plan = plan_of(scale, seeds)
        folder = Path("results") / scale / "tables"
        folder.mkdir(parents=True)
        for name in plan.main_tables:
            stage = plan.tables.stage(name)
            fabricate(stage.cells)
            printed = list(map(Path, plan.tables.printed_files(name)))
            table.run(stage, printed, folder / f"{name}.csv")
        stage = plan.claims.stage().model_copy(update={"figures": ()})
        tests = list(map(Path, plan.claims.inputs["tests"]))
        claims.run(stage, tests, [], folder / "claims.csv")
        return plan, folder

    return build


@pytest.fixture
def judged(tmp_path):
    """A plan, and by their names the two files of a run that its document is made of."""
    plan = plan_of("demo")
    stage = plan.claims.stage()
    cells = {key: cell.model_copy(update={"measured": ""}) for key, cell in stage.cells.items()}
    nothing = {"tables": (), "figures": (), "cells": cells}
    files = {name: tmp_path / "results" / name for name in ("claims.csv", "co2.csv")}
    claims.run(stage.model_copy(update=nothing), [], [], files["claims.csv"])
    files["co2.csv"].write_text(CO2, encoding="utf-8")
    Provenance("co2", {}, []).write(files["co2.csv"])
    return plan, files


def values_of(plan, folder, footprint=None):
    """What the template is filled with, and the claims and tables that it comes from."""
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    tables = {name: read_cells(folder / f"{name}.csv") for name in plan.main_tables}
    return reproduction.values_of(plan.reproduction(), lines, tables, footprint), lines, tables


def prose():
    return TEMPLATE.read_text(encoding="utf-8").partition(r"\documentclass")[2]


def used():
    """Function -> the names that the prose calls it with."""
    found = {"facts": {(name, "") for name in re.findall(r'facts\["([^"]*)"\]', prose())}}
    for kind, name, more in USED.findall(prose()):
        found.setdefault(kind, set()).add((name, more))
    return found


@pytest.mark.slow
def test_numbers_are_those_of_the_tables(project):
    plan, folder = project("demo")
    total = {"hours": "1.23456", "kwh": "0.04567", "kg": "0.0091"}
    values, lines, tables = values_of(plan, folder, total)
    cell = tables["main"]["CONV-4", "EPNet", "mini1"]
    value, width = float(cell["accuracy"]), float(cell["interval"])
    assert values["cell"]("main/CONV-4/EPNet/mini1") == rf"${value:.2f}\pm{width:.2f}$"
    gap, width = float(cell["difference"]), float(cell["difference_interval"])
    assert values["gap"]("main/CONV-4/EPNet/mini1") == rf"${gap:+.2f}\pm{width:.2f}$"
    assert values["gap"]("main/CONV-4/--Net/mini1") == reproduction.ABSENT
    assert values["cell"]("other/CONV-4/--Net/mini1") == reproduction.ABSENT
    facts = values["facts"]
    assert (facts["hours"], facts["kwh"]) == ("1.23", "0.0457")
    assert values["tables"]["co2"]["numbers"] == "results/demo/reports/co2.csv"
    assert values["tables"]["main"] == {
        "command": "snakemake --cores 8 tables/main.tex --config scale=demo",
        "numbers": "results/demo/tables/main.csv",
    }
    theirs = [line for line in lines if line["whose"] != "ours"]
    assert facts["claims"] == str(len(theirs))
    assert (facts["paper hours"], facts["level"]) == ("24480", "95")
    settings = plan.registry.recipes.resolve("epnet", "conv4").propagation
    assert float(facts["embedding alpha"]) == settings.embedding_alpha
    assert float(facts["label alpha"]) == settings.label_alpha
    tested = {row for block, row, _ in tables["classifiers"] if block == "--Net"}
    assert facts["classifiers"] == str(len(tested))
    assert facts["printed fails"] == str(sum(c["printed"] == "fails" for c in theirs))
    for line in lines:
        assert values["says"](line["id"], "this_run").endswith(line["this_run"])


def test_numbers_that_stand_in_the_prose_are_of_the_paper_and_its_code():
    """Its year, the alphas of the code, and what "100 unlabeled samples" may mean."""
    text = prose().partition(r"\begin{document}")[2]
    words = re.sub(r"\$[^$]*\$", "", re.sub(r"<<.*?>>|<%.*?%>", "", text, flags=re.DOTALL))
    typed = re.findall(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])", words)
    assert set(typed) == {"2020", "0.5", "0.2", "20", "100"}


@pytest.mark.slow
@pytest.mark.latex
@pytest.mark.parametrize(("scale", "seeds"), [("demo", 3), ("paper", None)])
def test_the_document_typesets(project, scale, seeds):
    if shutil.which("latexmk") is None:
        pytest.skip("latexmk is not installed")
    plan, folder = project(scale, seeds)
    check_names(plan, folder)
    (folder.parent / "figures").mkdir()
    for name, (width, height) in FIGURES.items():
        with figure(folder.parent / f"figures/{name}.pdf", width, height) as axes:
            axes.plot([0, 1])
    (folder / "co2.tex").write_text("A table.\n", encoding="utf-8")
    co2 = folder / "co2.csv"
    co2.write_text("level,hours,kwh,kg\ntotal,1.5,0.1,0.02\n", encoding="utf-8")
    out = Path("reproduction.pdf")
    tables = [folder / f"{name}.csv" for name in plan.main_tables]
    stage = plan.reproduction()
    assert {name for name, _ in used()["show_figure"]} == set(FIGURES) <= set(stage.figures)
    reproduction.run(stage, TEMPLATE, folder / "claims.csv", tables, out, co2)
    assert out.read_bytes().startswith(b"%PDF")
    assert max(overfull("reproduction.log"), default=0) <= 1
    log = Path("reproduction.log").read_text(errors="replace")
    assert "undefined" not in log
    assert r"Overfull \vbox" not in log
    assert all(f"{name}.pdf Graphic file" in log.replace("\n", "") for name in FIGURES)
    if scale == "paper":  # whose document takes long
        return
    first = out.read_bytes()
    reproduction.run(stage, TEMPLATE, folder / "claims.csv", tables, out, co2)
    assert out.read_bytes() == first


def check_names(plan, folder):
    """A number that only another scale has is fine; a misspelled one is not."""
    values, lines, _ = values_of(plan, folder, {"hours": "1", "kwh": "1", "kg": "1"})
    names = used()
    assert {name for name, _ in names["facts"]} <= values["facts"].keys()
    assert {name for kind in ("cell", "gap") for name, _ in names[kind]} <= set(plan.claims.cells)
    assert {name for name, _ in names["says"]} <= {line["id"] for line in lines}
    assert {judge for _, judge in names["says"]} <= set(reproduction.JUDGES)
    tables = {*plan.tables.every, "claims", "co2"}
    assert {name for kind in ("show_table", "when_made") for name, _ in names[kind]} <= tables


CO2 = "level,hours,kwh,kg\ntotal,1.5,0.1,0.02\n"


@pytest.mark.parametrize("name", ["co2.csv", "claims.csv"])
def test_a_damaged_file_is_named_with_the_remedy(judged, name):
    plan, files = judged
    files[name].write_text(files[name].read_text(encoding="utf-8")[:-1], encoding="utf-8")
    with pytest.raises(UserError, match=rf"{name} is damaged .*; delete it and run"):
        reproduction.run(
            plan.reproduction(),
            TEMPLATE,
            files["claims.csv"],
            [],
            Path("x.pdf"),
            files["co2.csv"],
        )


def test_without_latex_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="latexmk is missing: install LaTeX"):
        reproduction.compile_pdf("", [], tmp_path / "x.pdf")


@pytest.mark.latex
def test_a_text_that_latex_refuses_leaves_its_log(tmp_path):
    if shutil.which("latexmk") is None:
        pytest.skip("latexmk is not installed")
    with pytest.raises(UserError, match=r"could not typeset the document; its log is .*x\.log"):
        reproduction.compile_pdf(r"\nonsense", [], tmp_path / "x.pdf")
    assert "nonsense" in (tmp_path / "x.log").read_text(errors="replace")
    assert not (tmp_path / "x.pdf").exists()
