"""Settings of a machine whose powers are known, entries of a ledger, and a run with its meter."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from epcore.footprint.ledger import Entry
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


RUN = """
import sys
from epcore.footprint.meter_server import start_meter
print(start_meter(), flush=True)
sys.stdin.read()
"""


class Run:
    """A process that has started a meter and now waits."""

    def __init__(self):
        command = [sys.executable, "-c", RUN]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.path = Path(self.process.stdout.readline().strip())
        (self.meter,) = psutil.Process(self.process.pid).children()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def measures(self):
        """Whether the meter's process runs."""
        try:
            return self.meter.status() != psutil.STATUS_ZOMBIE  # nobody may be there to bury it
        except psutil.NoSuchProcess:
            return False

    def gone(self):
        """Waits for the meter's own end."""
        end = time.monotonic() + 60
        while self.measures() and time.monotonic() < end:
            time.sleep(0.05)
        assert not self.measures()
        assert not self.path.parent.exists()


@pytest.fixture
def run():
    started = Run()
    yield started
    started.kill()
    started.gone()
