"""What a terminal shows while `make` runs."""

import os
import pty
import subprocess
import sys

import pytest

pytestmark = pytest.mark.workflow


def shown(project, target):
    """What a terminal of 120 columns was sent."""
    inside, outside = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--logger", "rich", "--", target]
    with subprocess.Popen(
        command, cwd=project.folder, env=environment, stdout=outside, stderr=outside
    ) as run:
        os.close(outside)
        parts = []
        while True:
            try:
                part = os.read(inside, 65536)
            except OSError:  # Linux: the other side is closed
                break
            if not part:
                break
            parts.append(part)
    os.close(inside)
    text = b"".join(parts).decode()
    assert run.returncode == 0, text
    return text


def test_it_shows_jobs_done_of_all_and_what_runs(project):
    text = shown(project, "results/tiny/data/tiny-glyphs/images.npy")
    assert "Total Progress" in text
    assert "data" in text
    assert "0%" in text
    assert "Traceback" not in text
