"""The meter of a run: its jobs read it, and it ends when they and the run have."""

import os
import socket
import time

import pytest

from epcore.footprint.machine import Machine
from epcore.footprint.meter import METER, RunMeter, find_meter

JOULES_PER_KWH = 3.6e6
STALE = 0.1  # seconds; codecarbon measures only what is older than half of this


@pytest.fixture
def machine(settings):
    def build(**changes):
        values = {"cpu": "a processor", "cpus": os.cpu_count(), "cpu_power": 100.0}
        values |= {"ram_power": 20.0, "counters": False, "factor": 0.5}
        return Machine(settings=settings(), **values | changes)

    return build


def test_memory_takes_its_power_for_as_long_as_it_was_measured(run, machine):
    meter = RunMeter(run.path, machine(), [])
    before = time.monotonic()
    first = meter.read()
    after = time.monotonic()
    time.sleep(1)
    shortest = time.monotonic() - after
    last = meter.stop()
    longest = time.monotonic() - before
    seconds = (last.ram - first.ram) * JOULES_PER_KWH / 20
    assert shortest - STALE <= seconds <= longest + STALE
    # By its model an idle processor takes a tenth of its power, and a busy one all.
    assert 0.09 * 100 * seconds <= (last.cpu - first.cpu) * JOULES_PER_KWH <= 101 * seconds
    assert last.gpu == 0


def test_jobs_of_one_machine_read_one_meter_and_those_of_other_settings_another(run, machine):
    early = RunMeter(run.path, machine(), [])
    early.read()
    time.sleep(0.5)
    late, other = RunMeter(run.path, machine(), []), RunMeter(run.path, machine(ram_power=1), [])
    assert late.read().ram == pytest.approx(early.read().ram, rel=0.5)
    assert other.read().ram < 0.1 * early.read().ram
    for meter in (early, late, other):
        meter.stop()


def test_a_question_that_it_does_not_understand_disturbs_nobody(run, machine):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(run.path))
        stranger.sendall(b"how much?\n")
        assert stranger.recv(100) == b"null\n"
    meter = RunMeter(run.path, machine(), [])
    assert meter.stop().ram >= 0


def test_it_ends_with_the_last_job_of_a_run_that_was_killed(run, machine):
    meter = RunMeter(run.path, machine(), [])
    meter.read()
    run.kill()
    time.sleep(1)
    assert run.measures()
    assert meter.read().ram > 0
    meter.stop()
    run.gone()


def test_ctrl_c_does_not_reach_it(run):
    """A terminal interrupts a whole process group."""
    assert os.getpgid(run.meter.pid) != os.getpgid(run.process.pid)


def test_a_job_that_finds_no_run_has_a_meter_of_its_own(run, machine, monkeypatch):
    monkeypatch.setenv(METER, str(run.path))
    meter, _ = find_meter(machine(), [])
    assert isinstance(meter, RunMeter)
    meter.stop()
    run.kill()
    run.gone()
    own, first = find_meter(machine(), [])
    assert not isinstance(own, RunMeter)
    time.sleep(0.2)
    assert own.stop().ram > first.ram
