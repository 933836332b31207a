"""The settings of energy, and the memory that codecarbon counts in a SLURM job."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from epcore.footprint.energy import read
from epcore.footprint.tracker import FOLDER, SETTINGS


@pytest.mark.slow
def test_in_a_slurm_job_the_memory_is_that_of_the_machine(tmp_path, monkeypatch, settings):
    """codecarbon would ask the cluster for that of the job."""
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho ReqTRES=cpu=1,mem=1G,node=1 | tee asked\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    unknown = settings(ram_power=None)
    monkeypatch.setenv(SETTINGS, unknown.model_dump_json())
    outside = ram_watts_of_a_job(monkeypatch, "outside")
    for name in ("SLURM_JOB_ID", "SLURM_JOBID"):  # the second one is the older
        monkeypatch.setenv(name, "7")
    assert ram_watts_of_a_job(monkeypatch, "inside") == pytest.approx(outside, rel=0.2)
    assert not Path("asked").exists()


def ram_watts_of_a_job(monkeypatch, name):
    """Watts of the memory for each second of the job's share, in a process of its own."""
    monkeypatch.setenv(FOLDER, name)
    watts = subprocess.run([sys.executable, "-c", JOB], check=True, capture_output=True, text=True)
    (row,) = read(Path(name)).itertuples()
    assert row.ram_kwh > 0
    return float(watts.stdout)


JOB = """
import os
from pathlib import Path
from epcore.footprint import share
from epcore.footprint.tracker import tracked
before = dict(os.environ)
told, out = [], share.Share.out


def listening(self, total, delta):
    told.append(total)
    out(self, total, delta)


share.Share.out = listening
with tracked("evaluate", Path("x"), measured=True):
    assert os.environ == before
    sum(range(10_000_000))
print(told[-1].ram_power)
"""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"carbon_intensity": None}, "valid number"),
        ({"pue": 0.9}, "greater than or equal to 1"),
        ({"pue": math.inf}, "finite"),
        ({"cpu_power": math.nan}, "finite"),
        ({"carbon_intensity": math.nan}, "finite"),
        ({"carbon_intensity": 380}, "expected kg per kWh, at most 5; if these are grams.* 0.38"),
        ({"carbon_intensity": -1}, "greater than or equal to 0"),
    ],
)
def test_wrong_settings_are_refused(settings, changes, says):
    with pytest.raises(ValueError, match=says):
        settings(**changes)
