"""Settings of a machine whose powers are known, and the machine."""

from pathlib import Path

import pytest
import yaml

from epcore.footprint.config import FootprintSettings
from epcore.footprint.machine import Machine

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
        values = {"settings": settings(), "cpus": 2, "cpu_power": 100.0, "ram_power": 20.0}
        return Machine(**values | {"factor": 0.5} | changes)

    return build
