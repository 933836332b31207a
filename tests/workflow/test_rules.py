"""What every rule states, read from the rule files themselves."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from plans import Commands

from epcore.stages import STAGES, Figure

ROOT = Path(__file__).parents[2]


def rules():
    for file in sorted((ROOT / "workflow/rules").glob("*.smk")):
        text = file.read_text()
        yield from re.findall(r"^rule (\w+):\n((?:    .*\n|\n)+)", text, re.M)
        # Rules in a loop have no name there, and stand one step to the right.
        for number, body in enumerate(
            re.findall(r"^    rule:\n((?:        .*\n|\n)+)", text, re.M)
        ):
            yield f"{file.stem}[{number}]", textwrap.dedent(body).replace("\n", "\n    ")


def test_every_rule_that_runs_something_has_log_threads_and_resources():
    running = {name: body for name, body in rules() if "    shell:" in body}
    assert len(running) >= 9
    assert {"evaluate[0]", "figures[0]"} <= running.keys()
    for name, body in running.items():
        for word in ("log", "threads", "resources"):
            assert re.search(rf"^    {word}:", body, re.M), (name, word)


def planned_jobs(*arguments):
    """Inputs, outputs and command of every job that a dry run of the project plans."""
    command = [sys.executable, "-m", "snakemake", "-n", "-p", "--forceall", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for block in done.stdout.split("\n\n"):
        files = dict(re.findall(r"^    (input|output): (.*)$", block, re.M))
        said = re.search(r"^Shell command: epcore (.*) > ", block, re.M)
        if said is not None:
            inputs, outputs = (files.get(k, "").split(", ") for k in ("input", "output"))
            yield set(inputs), set(outputs), said[1]


@pytest.mark.slow
def test_a_stage_reads_and_makes_what_its_rule_declares(monkeypatch):
    """It finds its files by the names of the job; Snakemake by the rule's patterns."""
    monkeypatch.chdir(ROOT)
    known = {"data": "store.json", "queries": "store.json", "features": "images.npy"}
    stages, commands = set(), Commands(monkeypatch)
    for inputs, outputs, command in planned_jobs("all", "reports/reproduction.pdf"):
        if command.split()[0] not in STAGES:
            continue
        name, found = commands.arguments(command)
        for option in STAGES[name].files:
            files = found[option.name] or []
            for file in files if isinstance(files, list) else [files]:
                if option.name == "out":
                    assert any(made.startswith(str(file)) for made in outputs), (name, file)
                else:
                    read = file / known[option.name] if not file.suffix else file
                    assert str(read) in inputs, (name, file)
        stages.add(name)
    assert stages == set(STAGES) - {"select", "gap"}  # of scales and recipes by path


def test_every_stage_that_draws_a_figure_has_a_caption_for_the_report():
    drawing = [name for name, stage in STAGES.items() if isinstance(stage.out, Figure)]
    assert len(drawing) > 2
    for name in drawing:
        assert (ROOT / "workflow/report" / f"{name}.rst").is_file(), name


def test_epcore_does_not_know_snakemake():
    for file in (ROOT / "epcore").rglob("*.py"):
        assert not re.search(r"^\s*(import|from) snakemake", file.read_text(), re.M), file


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("snakemake", "--lint"), ("snakefmt", "--check", "Snakefile", "workflow")]
)
def test_snakemakes_own_critics_have_nothing_to_say(command):
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
