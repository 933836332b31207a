"""What a kilowatt-hour weighs."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from codecarbon.input import DataSource

from epcore.errors import UserError
from epcore.footprint.energy import read
from epcore.footprint.factor import carbon_intensity
from epcore.footprint.tracker import FOLDER, SETTINGS


def test_an_explicit_factor_wins(settings):
    assert carbon_intensity(settings(carbon_intensity=0.123, country="FRA", region=None)) == 0.123


@pytest.mark.slow
def test_in_a_slurm_job_the_memory_is_that_of_the_machine(tmp_path, monkeypatch, settings):
    """codecarbon would ask the cluster for that of the job."""
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho ReqTRES=cpu=1,mem=1G,node=1 | tee asked\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    unknown = settings(ram_power=None, carbon_intensity=None, country="CAN", region=None)
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


def test_a_country_has_the_factor_of_codecarbons_table(settings):
    """Grams per kWh stand in the table as they are."""
    mix = DataSource().get_global_energy_mix_data()
    for country in ("FRA", "CAN", "POL"):
        found = carbon_intensity(settings(carbon_intensity=None, country=country, region=None))
        assert found == pytest.approx(mix[country]["carbon_intensity"] / 1000)


def test_a_region_has_its_own(settings):
    """The table has pounds per MWh for US states and grams per kWh for Swedish zones."""
    state = DataSource().get_country_emissions_data("usa")["california"]["emissions"]
    for country, region, expected in (
        ("USA", "california", state * 0.45359237 / 1000),
        ("SWE", "SE3", 0.027),
        ("CHN", "beijing", 0.5554),
    ):
        found = carbon_intensity(settings(carbon_intensity=None, country=country, region=region))
        assert found == pytest.approx(expected, rel=1e-4), region
    quebec = carbon_intensity(settings(carbon_intensity=None, country="CAN", region="quebec"))
    assert 0 < quebec < 0.01


@pytest.mark.parametrize(
    ("country", "region", "says"),
    [
        ("XXX", None, "no factor of country 'XXX'"),
        ("CAN", "qubec", r"region 'qubec' of CAN; use one of: alberta, .*quebec"),
        ("USA", "_unit", "region '_unit' of USA"),
        ("SWE", "NO1", "region 'NO1' of SWE; use one of: SE1, SE2, SE3, SE4"),
        ("CHN", "tibet", "region 'tibet' of CHN"),
    ],
)
def test_an_unknown_place_is_an_error_not_another_factor(settings, country, region, says):
    with pytest.raises(UserError, match=says):
        carbon_intensity(settings(carbon_intensity=None, country=country, region=region))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"carbon_intensity": None, "country": None, "region": None}, "give carbon_intensity"),
        ({"country": "DEU", "region": "bavaria"}, "set region to null"),
        ({"country": "Canada"}, "pattern"),
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
