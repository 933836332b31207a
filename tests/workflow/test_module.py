"""As a module of somebody else's workflow."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

ROOT = Path(__file__).parents[2]
# Of rules that are not ours, though our folders have such names.
THEIRS = ("results/summary.txt", "tables/theirs.tex", "figure/theirs.txt")


@pytest.fixture
def theirs(tmp_path, request):
    """A workflow with the lines of docs/tutorials/workflow.md and a rule of its own.

    The parameter is where its Snakefile and ours lie, each in its project.
    """
    snakefile = getattr(request, "param", "Snakefile")
    shutil.copytree(ROOT / "config", tmp_path / "config")
    page = (ROOT / "docs/tutorials/workflow.md").read_text(encoding="utf-8")
    lines = re.search(r"```python\n(configfile:.*?)```", page, re.DOTALL)[1]
    assert '"epnet/Snakefile"' in lines
    text = lines.replace("epnet/Snakefile", str(ROOT / snakefile))
    (tmp_path / snakefile).parent.mkdir(exist_ok=True)
    files = ", ".join(f'"{name}"' for name in THEIRS)
    text += f"\nrule more:\n    output: {files}\n    shell: 'touch {{output}}'\n"
    (tmp_path / snakefile).write_text(text, encoding="utf-8")

    def snakemake(*words):
        command = [sys.executable, "-m", "snakemake", "--cores", "1", *words]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return snakemake


def test_its_rules_run_there_and_feed_a_rule_of_theirs(theirs, tmp_path):
    theirs()
    drawn = tmp_path / "results/demo/figures/two-moons.csv"
    assert drawn.stat().st_size > 1000
    assert (tmp_path / "mine.txt").read_bytes() == drawn.read_bytes()


@pytest.mark.parametrize("theirs", ["Snakefile", "workflow/Snakefile"], indirect=True)
def test_the_main_table_is_planned_there_with_all_it_needs(theirs):
    told = theirs("-n", "tables/main.tex")
    assert re.search(r"^pretrain +6$", told, re.M)
    assert re.search(r"^publish +1$", told, re.M)


def test_files_of_its_own_are_asked_for_by_any_name(theirs):
    for name in THEIRS:
        assert re.search(r"^more +1$", theirs("-n", name), re.M)


@pytest.mark.parametrize("theirs", ["workflow/Snakefile"], indirect=True)
def test_a_forecast_finds_the_snakefile_there(theirs, tmp_path):
    command = [sys.executable, "-m", "epcore", "forecast", "figures/two-moons.pdf"]
    done = subprocess.run(
        [*command, "--scale", "demo"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Forecast of figures/two-moons.pdf at scale demo: 2 jobs to run" in done.stdout, (
        done.stderr
    )
