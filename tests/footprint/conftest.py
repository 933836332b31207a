"""Settings of a machine whose powers are known."""

from pathlib import Path

import pytest
import yaml

from epcore.footprint.config import FootprintSettings

CONFIG = Path(__file__).parents[2] / "config"
KNOWN = {"cpu_power": 100.0, "ram_power": 20.0, "carbon_intensity": 0.5, "pue": 1.25}


@pytest.fixture
def settings():
    """The file footprint.yaml with some keys changed."""

    def build(**changes):
        content = yaml.safe_load((CONFIG / "footprint.yaml").read_text())
        return FootprintSettings(**content | KNOWN | changes)

    return build
