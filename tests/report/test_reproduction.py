"""The reproduction as a document: its numbers are those of the tables, and it typesets."""

import csv
import re
import shutil
from pathlib import Path

import pytest
from test_latex import overfull

from epcore.errors import UserError
from epcore.plan import Plan
from epcore.report import claims, reproduction, table
from epcore.report.figure import figure
from epcore.report.text_table import read_cells

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "workflow/report/reproduction.tex"
CONFIG = ROOT / "config"
# Width and height of those that the document shows, in inches.
FIGURES = {
    "ablation": (4.8, 3.4),
    "two-moons": (4.8, 2.6),
    "decision-boundary": (4.8, 2.7),
    "interpolation": (4.8, 5),
    "speed": (5.6, 5.2),
    "per-episode": (5.6, 5.2),
}
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
            printed = map(Path, plan.tables.printed_files(name).values())
            table.run(stage, folder / f"{name}.csv", *printed)
        stage = plan.claims.stage().model_copy(update={"figures": ()})
        tests = list(map(Path, plan.claims.inputs["tests"]))
        claims.run(stage, tests, [], folder / "claims.csv")
        return plan, folder

    return build


@pytest.fixture
def judged(tmp_path):
    """A plan, and by their names the two files of a run that its document is made of."""
    plan = Plan(CONFIG, "demo")
    stage = plan.claims.stage()
    cells = {key: cell.model_copy(update={"measured": ""}) for key, cell in stage.cells.items()}
    nothing = {"tables": (), "figures": (), "cells": cells}
    files = {name: tmp_path / "results" / name for name in ("claims.csv", "co2.csv")}
    claims.run(stage.model_copy(update=nothing), [], [], files["claims.csv"])
    files["co2.csv"].write_text(CO2, encoding="utf-8")
    return plan, files


def macros_of(plan, folder, footprint=None):
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    tables = {name: read_cells(folder / f"{name}.csv") for name in plan.main_tables}
    text = reproduction.numbers(plan.reproduction(), lines, tables, footprint)
    return dict(re.findall(r"\\csname (.*?)\\endcsname\{(.*)\}", text)), lines, tables


def used():
    """Kind -> names, of all that the prose uses."""
    found = {}
    text = (TEMPLATE).read_text(encoding="utf-8").partition(r"\begin{document}")[2]
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
    assert r"results/demo/reports/co2.csv" in known["made co2"].replace("\\", "")
    assert r"results/demo/tables/main.csv" in known["made main"].replace("\\", "")
    theirs = [line for line in lines if line["whose"] != "ours"]
    assert known["fact claims"] == str(len(theirs))
    assert (known["fact paper hours"], known["fact level"]) == ("24480", "95")
    settings = plan.registry.recipes.resolve("epnet", "conv4").propagation
    assert float(known["fact embedding alpha"]) == settings.embedding_alpha
    assert float(known["fact label alpha"]) == settings.label_alpha
    tested = {row for block, row, _ in tables["classifiers"] if block == "--Net"}
    assert known["fact classifiers"] == str(len(tested))
    assert known["fact printed fails"] == str(sum(c["printed"] == "fails" for c in theirs))
    assert all(known[f"word {line['id']} run"] == line["this_run"] for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["demo", "small", "paper"])
def test_the_prose_uses_no_name_that_nothing_has(project, scale):
    """A number that only another scale has is fine; a misspelled one is not."""
    plan, folder = project(scale)
    known, lines, _ = macros_of(plan, folder, {"hours": "1", "kwh": "1", "kg": "1"})
    every = plan.claims.cells
    ids = {line["id"] for line in lines}
    names = used()
    assert {f"fact {name}" for name, _ in names["fact"]} <= set(known)
    assert {name for kind in ("cell", "gap") for name, _ in names[kind]} <= set(every)
    assert {name for name, _ in names["says"]} <= ids
    assert {verdict for _, verdict in names["says"]} <= set(reproduction.VERDICTS)
    tables = {*Plan(CONFIG, "demo").registry.tables.every, "claims", "co2"}
    assert {name for name, _ in names["showtable"]} <= tables


def test_numbers_that_stand_in_the_prose_are_of_the_paper_and_its_code():
    """Its year, the alphas of the code, and what "100 unlabeled samples" may mean."""
    prose = (TEMPLATE).read_text(encoding="utf-8").partition(r"\begin{document}")[2]
    words = re.sub(r"\$[^$]*\$", "", USED.sub("", prose))
    typed = re.findall(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])", words)
    assert set(typed) == {"2020", "0.5", "0.2", "20", "100"}


@pytest.mark.slow
@pytest.mark.latex
@pytest.mark.parametrize(
    ("scale", "seeds"), [("demo", None), ("demo", 3), ("small", None), ("paper", None)]
)
def test_the_document_typesets(project, scale, seeds):
    if shutil.which("latexmk") is None:
        pytest.skip("latexmk is not installed")
    plan, folder = project(scale, seeds)
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
    assert {name for name, _ in used()["showfigure"]} == set(FIGURES) <= set(stage.figures)
    reproduction.run(stage, TEMPLATE, folder / "claims.csv", tables, out, co2)
    assert out.read_bytes().startswith(b"%PDF")
    assert max(overfull("reproduction.log"), default=0) <= 1
    log = Path("reproduction.log").read_text(errors="replace")
    assert "undefined" not in log
    assert r"Overfull \vbox" not in log
    assert all(f"{name}.pdf Graphic file" in log.replace("\n", "") for name in FIGURES)
    first = out.read_bytes()
    reproduction.run(stage, TEMPLATE, folder / "claims.csv", tables, out, co2)
    assert out.read_bytes() == first


CO2 = "level,hours,kwh,kg\ntotal,1.5,0.1,0.02\n"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("co2.csv", lambda text: text.replace("total", "job")),
        ("co2.csv", lambda text: text[: text.rindex(",")]),
        ("co2.csv", lambda text: text.replace("kwh", "Wh")),
        ("co2.csv", lambda text: text.replace("1.5", "many")),
        ("claims.csv", lambda text: text[: text.rindex(",")]),
        ("claims.csv", lambda text: text.replace("whose", "who")),
        ("claims.csv", lambda text: text.replace("not asked", "ajar")),
        ("claims.csv", lambda text: ""),
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(judged, name, change):
    plan, files = judged
    path = files[name]
    text = path.read_text(encoding="utf-8")
    path.write_text(change(text), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != text
    try:
        with pytest.raises(UserError, match=rf"{name} is damaged \(.*\); delete it and run"):
            reproduction.run(
                plan.reproduction(),
                TEMPLATE,
                files["claims.csv"],
                [],
                Path("x.pdf"),
                files["co2.csv"],
            )
    finally:
        path.write_text(text, encoding="utf-8")


def test_without_latex_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="latexmk is missing: install LaTeX"):
        reproduction.compile_pdf(TEMPLATE, "", [], tmp_path / "x.pdf")


@pytest.mark.latex
def test_a_text_that_latex_refuses_leaves_its_log(tmp_path):
    if shutil.which("latexmk") is None:
        pytest.skip("latexmk is not installed")
    (tmp_path / "text.tex").write_text(r"\nonsense", encoding="utf-8")
    with pytest.raises(UserError, match=r"could not typeset .*text\.tex; its log is .*x\.log"):
        reproduction.compile_pdf(tmp_path / "text.tex", "", [], tmp_path / "x.pdf")
    assert "nonsense" in (tmp_path / "x.log").read_text(errors="replace")
    assert not (tmp_path / "x.pdf").exists()
