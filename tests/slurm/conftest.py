"""A real SLURM of one node, for the tests of this folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("one-node.sh")
CONFIGURATION = Path("/etc/slurm/slurm.conf")
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun")


def unavailable():
    if os.getuid() != 0:
        return "a SLURM of one node needs root"
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if lacking:
        return f"{', '.join(lacking)} missing: apt-get install slurm-wlm munge"
    if CONFIGURATION.exists():
        # A test like this one that was killed has left its link, unless its SLURM still runs.
        ours = CONFIGURATION.is_symlink() and "ClusterName=epcore\n" in CONFIGURATION.read_text()
        if not ours or any(process.name() == "slurmctld" for process in psutil.process_iter()):
            return "another SLURM is configured on this machine"
        CONFIGURATION.unlink()
    return ""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The environment in which SLURM's programs find it."""
    if reason := unavailable():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("slurm")
    subprocess.run([SCRIPT, "start", folder], check=True)
    try:
        yield {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "EPCORE_SLURM_ACCOUNT": "tests",
            "EPCORE_SLURM_POLL": "3",
            "EPCORE_SLURM_STATUS": "squeue",
        }
    finally:
        subprocess.run([SCRIPT, "stop", folder], check=True)
