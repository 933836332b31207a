"""Snakemake itself is killed, or started twice: nothing is lost, nothing is torn."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.workflow

RESULTS = ("results/tiny/tables/main.csv", "results/tiny/tables/main.tex", "tables/main.tex")
BUILD = ("--cores", "2", "tables/main.tex")


def start(project, *arguments):
    command = [sys.executable, "-m", "snakemake", *arguments]
    return subprocess.Popen(
        command, cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def same(project, finished):
    for file in RESULTS:
        assert (project.folder / file).read_bytes() == (finished.folder / file).read_bytes(), file


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_driver_that_is_stopped_and_started_again_ends_with_the_same_table(
    finished_once, project, number
):
    """After SIGKILL its jobs live on, beside those of the next driver."""
    moments = random.Random(int(number))
    kills = 0
    for delay in [moments.uniform(3, 9) for _ in range(4)]:
        driver = start(project, *BUILD)
        try:
            driver.wait(delay)
        except subprocess.TimeoutExpired:
            os.kill(driver.pid, number)
            kills += 1
        driver.communicate(timeout=120)
        # A driver that had no time to give its lock back leaves it to the user.
        assert project.snakemake("--unlock", "tables/main.tex").code == 0
    assert kills >= 2
    run = project.build()
    assert run.code == 0, run.text
    same(project, finished_once[0])


def test_a_second_run_on_the_same_checkout_is_told_to_wait(finished_once, project):
    first = start(project, *BUILD)
    while not list(project.folder.glob(".snakemake/locks/*")):
        assert first.poll() is None
        time.sleep(0.02)
    second = project.build()
    assert second.code != 0
    assert "cannot be locked" in second.text
    assert first.wait(300) == 0
    same(project, finished_once[0])


def test_two_runs_without_a_lock_tear_nothing(finished_once, project):
    runs = [start(project, "--nolock", *BUILD) for _ in range(2)]
    for run in runs:
        run.communicate(timeout=300)
    final = project.build()
    assert final.code == 0, final.text
    same(project, finished_once[0])
    assert not [path for path in project.folder.rglob("*") if ".tmp" in path.name]
