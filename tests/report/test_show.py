"""Tables in the terminal: the numbers of this run, readable at any width."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import figure_files
import pytest
from plans import plan_of

from epcore.commands.cli import main
from epcore.commands.show import _is_measured
from epcore.plan import paths
from epcore.report.lines import Entry, Line

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def built(typeset):
    """A table of fabricated scores where the pipeline would have it."""

    def build(name):
        typeset(name)
        for file, path in {
            f"{name}.csv": paths.TABLE_CSV,
            f"{name}.html": paths.TABLE_HTML,
            f"{name}.tex": paths.TABLE_TEX,
        }.items():
            place = Path(path.format(scale="demo", table=name))
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)

    return build


def shown(capsys, monkeypatch, *arguments, columns=200):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["show", *arguments, "--scale", "demo", "--settings", str(CONFIG)]) == 0
    return capsys.readouterr().out


def lines_of(name):
    return figure_files.lines_of(Path(paths.TABLE_CSV.format(scale="demo", table=name)))


@pytest.mark.parametrize(
    ("name", "columns"), [("main", 60), ("compared-gaps", 200), ("imagenetfs-prior", 200)]
)
def test_every_number_of_this_run_is_there_whole(built, capsys, monkeypatch, name, columns):
    built(name)
    text = shown(capsys, monkeypatch, name, columns=columns)
    ours = [line for line in lines_of(name) if line["source"].startswith("this run")]
    assert ours
    found = re.findall(r"(?<![\d.±+−])\d+\.\d\d(?!\d)", text)
    for line in ours:
        assert f"{float(line['accuracy']):.2f}" in found
        if columns == 200:
            assert f"±{float(line['interval']):.2f}" in text
    assert "…" not in text


def test_rows_of_the_literature_are_left_to_the_page(built, capsys, monkeypatch):
    built("main")
    text = shown(capsys, monkeypatch)
    assert "EPNet" in text
    assert "TADAM" not in text
    assert paths.TABLE_HTML.format(scale="demo", table="main") in text


@pytest.mark.parametrize(
    ("line", "measured"),
    [
        (Line("GNN", 1, (), (), (Entry("44.80", "0.80"), Entry("50.33", "0.36"))), True),
        (Line("TADAM", 2, (), (), (Entry(""), Entry("50.33", "0.36"))), False),
        (Line("*authors' re-run*", 1, (), (), (Entry(""), Entry("50.33"))), False),
        (Line("EPNet", None, (), (), (Entry(""), Entry(""))), True),
    ],
)
def test_a_printed_row_that_is_trained_again_is_shown(line, measured):
    assert _is_measured(line, "paper") == measured


def test_a_row_stands_with_its_own_numbers_and_those_of_the_paper(built, capsys, monkeypatch):
    built("main")
    text = shown(capsys, monkeypatch, "main")
    block = plan_of("demo").tables.table("main").blocks[0]
    (row,) = (row for row in block.rows if row.name == "EPNet")
    (line,) = [line for line in text.splitlines() if line.split()[:1] == ["EPNet"]][:1]
    cells = {
        each["column"]: each
        for each in lines_of("main")
        if (each["block"], each["row"]) == (block.name, row.name)
    }
    expected = []
    for cell in cells.values():
        expected += [f"{float(cell['accuracy']):.2f}", f"±{float(cell['interval']):.2f}"]
        expected.append(cell["paper_accuracy"] or "–")
    assert line.split()[1:] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mian"], "did you mean 'main'"),
        (["tables/main.tex"], "snakemake --cores all tables/main.tex --config scale=demo"),
        (["**"], "'**'"),
    ],
)
def test_a_table_that_is_not_there_is_told(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["show", *arguments, "--scale", "demo", "--settings", str(CONFIG)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_damaged_table_is_named_in_one_line_by_the_first_cell_that_it_lacks(built, capsys):
    built("main")
    file = Path(paths.TABLE_CSV.format(scale="demo", table="main"))
    text = file.read_text(encoding="utf-8")
    left = re.sub(r"^main,WRN-28-10,EPNet,(?!mini1).*\n", "", text, flags=re.M)
    file.write_text(left, encoding="utf-8")
    assert main(["show", "main", "--scale", "demo", "--settings", str(CONFIG)]) == 2
    assert capsys.readouterr().err == (
        f"epcore: table {file} has no line for EPNet in WRN-28-10, mini5; delete it and run the "
        "same command again\n"
    )


def test_a_table_of_another_scale_is_told_with_its_scale(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = Path(paths.TABLE_HTML.format(scale="mine", table="own"))
    page.parent.mkdir(parents=True)
    page.touch()
    assert main(["show", "own", "--scale", "demo", "--settings", str(CONFIG)]) == 2
    assert "epcore show own --scale mine" in capsys.readouterr().err


def test_where_there_is_no_browser_the_page_is_named(built, monkeypatch, capsys):
    built("main")
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda page: opened.append(page))
    asked = ["show", "main", "--open", "--scale", "demo", "--settings", str(CONFIG)]
    assert main(asked) == 0
    assert opened[0].startswith("file:///")
    assert (
        "No browser was found here; open results/demo/tables/main.html" in capsys.readouterr().out
    )


def test_what_a_terminal_cannot_print_is_a_question_mark(built):
    """In a process of its own, which knows its terminal's encoding from the environment."""
    built("main")
    command = [sys.executable, "-m", "epcore", "show", "main", "--scale", "demo"]
    done = subprocess.run(
        [*command, "--settings", str(CONFIG)],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "200"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("ascii")
    assert "EPNet" in text
    assert "?" in text
