"""Settings of a machine whose powers are known, the machine, and entries of a ledger."""

from pathlib import Path

import pytest
import yaml

from epcore.footprint.ledger import Entry
from epcore.footprint.machine import Machine
from epcore.plan.footprint import FootprintSettings

CONFIG = Path(__file__).parents[2] / "config"
KNOWN = {"cpu_power": 100.0, "ram_power": 20.0, "carbon_intensity": 0.5, "pue": 1.25}


@pytest.fixture
def settings():
    """The file footprint.yaml with some keys changed."""

    def build(**changes):
        content = yaml.safe_load((CONFIG / "footprint.yaml").read_text())
        return FootprintSettings(**content | KNOWN | changes)

    return build


@pytest.fixture
def machine(settings):
    """Two processors of 100 W together and 20 W of memory, with some values changed."""

    def build(**changes):
        values = {
            **{"settings": settings(), "cpus": 2, "cpu_power": 100.0, "ram_power": 20.0},
            **{"counters": False, "factor": 0.5},
        }
        return Machine(**values | changes)

    return build


@pytest.fixture
def entry():
    """A line of the ledger, one hour on one core, with some values changed."""

    def build(**changes):
        values = {
            **{"attempt": "a", "job": "results/demo/x.pt", "stage": "pretrain"},
            **{"state": "finished", "at": "2026-01-01T00:00:00+00:00", "host": "h"},
            **{"device": "cpu", "seconds": 3600.0, "cpu_seconds": 3600.0, "kwh": 0.01},
            **{"measured_kwh": 0.0, "tdp_kwh": 0.02, "kg": 0.001, "factor": 0.1, "method": "m"},
            **{"pue": 1.25, "factor_source": "set in config/footprint.yaml"},
        }
        return Entry(**values | changes)

    return build
