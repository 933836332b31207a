"""What a kilowatt-hour weighs and what a machine draws, found out once."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from codecarbon.input import DataSource

from epcore.errors import UserError
from epcore.footprint.config import FootprintSettings
from epcore.footprint.machine import carbon_intensity, known_machine
from epcore.footprint.tracker import LEDGER, SETTINGS


def test_an_explicit_factor_wins(settings):
    assert carbon_intensity(settings(carbon_intensity=0.123, country="FRA", region=None)) == 0.123


def test_in_a_slurm_job_the_memory_is_that_of_the_machine(tmp_path, monkeypatch, settings):
    """codecarbon would ask the cluster for that of the job."""
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho ReqTRES=cpu=1,mem=1G,node=1 | tee asked\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    unknown = settings(ram_power=None, carbon_intensity=None, country="CAN", region=None)
    monkeypatch.setenv(SETTINGS, unknown.model_dump_json())
    outside = ram_power_of_a_job(monkeypatch, "outside")
    for name in ("SLURM_JOB_ID", "SLURM_JOBID"):  # the second one is the older
        monkeypatch.setenv(name, "7")
    assert ram_power_of_a_job(monkeypatch, "inside") == outside > 0
    assert not Path("asked").exists()


def ram_power_of_a_job(monkeypatch, name):
    """Watts, of a job in a process of its own that finds them out."""
    monkeypatch.setenv(LEDGER, f"{name}/ledger.jsonl")
    subprocess.run([sys.executable, "-c", JOB], check=True)
    (machine,) = Path(name, "machines").iterdir()
    return json.loads(machine.read_text())["ram_power"]


JOB = """
import os
from pathlib import Path
from epcore.footprint.tracker import tracked
before = dict(os.environ)
with tracked("evaluate", Path("x"), measured=True):
    assert os.environ == before
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


CHILD = """
import sys
from pathlib import Path
from epcore.footprint.machine import known_machine
from epcore.footprint.config import FootprintSettings
known_machine(FootprintSettings.model_validate_json(sys.argv[1]), Path(sys.argv[2]))
print("codecarbon" in sys.modules)
"""


def loads_codecarbon(settings: FootprintSettings, folder):
    command = [sys.executable, "-c", CHILD, settings.model_dump_json(), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


def test_a_machine_is_found_out_once_for_each_setting(tmp_path, settings):
    unknown = settings(cpu_power=None, ram_power=None)
    assert loads_codecarbon(unknown, tmp_path)
    assert not loads_codecarbon(unknown, tmp_path)
    (file,) = tmp_path.iterdir()
    machine = known_machine(unknown, tmp_path)
    assert machine.cpu_power > 0
    assert machine.ram_power > 0
    changed = known_machine(settings(), tmp_path)
    assert (changed.cpu_power, changed.ram_power, changed.factor) == (100, 20, 0.5)
    assert changed.watts_per_core == pytest.approx(120 / changed.cpus)
    file.write_text("torn")
    assert known_machine(settings(), tmp_path) == changed
