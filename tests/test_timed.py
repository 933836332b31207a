"""`docs/timed.py`: what a command took is measured, and typed by nobody."""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOG = "mkdir -p .snakemake/log; echo '3 of 3 steps (100%) done' > .snakemake/log/a.snakemake.log"
BUSY = f"{sys.executable} -c 'import time\nwhile time.process_time() < 1: pass'"


pytestmark = pytest.mark.slow


@pytest.fixture
def timed(tmp_path):
    """Times commands in a project of nothing else, and returns exit codes and lines."""
    for name in ("timed.py", "results/times/times.csv"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs" / name, tmp_path / "docs" / name)

    def run(command):
        words = [sys.executable, "docs/timed.py", "some words", command]
        code = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode
        with (tmp_path / "docs/results/times/times.csv").open(encoding="utf-8") as file:
            return code, [line for line in csv.DictReader(file) if line["what"] == "some words"]

    return run


def test_wall_time_is_told_from_processor_time(timed):
    code, (line,) = timed(BUSY)
    assert code == 0
    assert int(line["seconds"]) >= int(line["processor_seconds"]) >= 1
    _, (line,) = timed("sleep 2")
    assert int(line["seconds"]) >= 2
    assert line["processor_seconds"] == "0"
    assert line["jobs"] == ""


def test_a_line_is_replaced_by_the_next_and_kept_where_the_command_fails(timed):
    timed(LOG)
    _, (line,) = timed(LOG)
    assert line["jobs"] == "3"
    assert timed(f"{LOG}; exit 3") == (1, [line])
