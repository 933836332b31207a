"""What every rule states, read from the rule files themselves."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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


def test_every_rule_that_runs_something_has_log_benchmark_threads_and_resources():
    running = {name: body for name, body in rules() if "    shell:" in body}
    assert len(running) >= 9
    assert "evaluate[0]" in running
    for name, body in running.items():
        for word in ("log", "benchmark", "threads", "resources"):
            assert re.search(rf"^    {word}:", body, re.M), (name, word)


def test_the_snakefile_stays_short():
    assert len((ROOT / "Snakefile").read_text().splitlines()) < 60


def test_epcore_does_not_know_snakemake():
    for file in (ROOT / "epcore").rglob("*.py"):
        assert not re.search(r"^\s*(import|from) snakemake", file.read_text(), re.M), file


@pytest.mark.parametrize(
    "command", [("snakemake", "--lint"), ("snakefmt", "--check", "Snakefile", "workflow")]
)
def test_snakemakes_own_critics_have_nothing_to_say(command):
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
