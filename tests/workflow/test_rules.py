"""What every rule states, read from the rule files themselves."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from epcore.commands.stages import COMPUTE

ROOT = Path(__file__).parents[2]

ENERGY = "results/demo/energy"


def test_every_rule_that_runs_something_has_log_and_resources():
    running = {}
    for file in sorted((ROOT / "workflow/rules").glob("*.smk")):
        found = re.findall(r"^rule (\w+):\n((?:    .*\n|\n)+)", file.read_text(), re.M)
        running |= {name: body for name, body in found if re.search("    (shell|script):", body)}
    assert len(running) >= 9
    for name, body in running.items():
        for word in ("log", "resources"):
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
def test_a_command_is_told_files_that_its_rule_declares():
    """Folders of declared files too."""
    stages = set()
    for inputs, outputs, command in planned_jobs("all", "compared", "reports/reproduction.pdf"):
        stage, *words = shlex.split(command)
        if stage not in COMPUTE:
            continue
        declared = {str(path) for file in inputs | outputs for path in (file, *Path(file).parents)}
        told = {word for word in words if word.startswith("results/")}
        undeclared = {ENERGY} if stage == "co2" else set()  # it grows with every job
        assert told <= declared | undeclared, (stage, told - declared)
        stages.add(stage)
    assert stages == set(COMPUTE) - {"select"}  # of recipes with candidates


def test_epcore_does_not_know_snakemake():
    for file in (ROOT / "epcore").rglob("*.py"):
        assert not re.search(r"^\s*(import|from) snakemake", file.read_text(), re.M), file
