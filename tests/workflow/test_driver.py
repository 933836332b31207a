"""Snakemake itself is killed: nothing is lost, nothing is torn."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.workflow

RESULTS = ("results/tiny/tables/main.csv", "results/tiny/tables/main.tex", "tables/main.tex")
NETWORK = "results/tiny/models/tiny-glyphs/conv4/epnet"
# While trainings run, and once a network has been pretrained. After SIGKILL the jobs of a driver
# live on, beside those of the next one.
MOMENTS = (("s0/pretrain.state/*", signal.SIGKILL), ("s0/pretrain.pt", signal.SIGTERM))


@pytest.fixture
def project(finished):
    """A project without one of the two networks, and without its tables."""
    for name in (NETWORK, "results/tiny/tables", "tables"):
        shutil.rmtree(finished.folder / name)
    return finished


def test_a_driver_that_is_stopped_and_started_again_ends_with_the_same_table(
    finished_once, project
):
    """The table of an undisturbed one with two cores, whose jobs' energy was measured."""
    project.replace("config/footprint.yaml", "tracking: true", "tracking: false")
    command = [sys.executable, "-m", "snakemake", "--cores", "8", "tables/main.tex"]
    for moment, number in MOMENTS:
        driver = subprocess.Popen(
            command, cwd=project.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not list((project.folder / NETWORK).glob(moment)):
            assert driver.poll() is None
            time.sleep(0.02)
        os.kill(driver.pid, number)
        driver.wait(120)
        if number == signal.SIGKILL:  # it had no time to give its lock back
            refused = project.snakemake("--cores", "2", "tables/main.tex")
            assert refused.code != 0
            assert "--unlock" in refused.text
        assert project.snakemake("--unlock", "tables/main.tex").code == 0
    run = project.build("--cores", "8")
    assert run.code == 0, run.text
    for file in RESULTS:
        expected = (finished_once[0].folder / file).read_bytes()
        assert (project.folder / file).read_bytes() == expected, file
    assert not [path for path in project.folder.rglob("*") if ".tmp" in path.name]
