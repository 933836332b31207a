"""The meter of a run: its jobs read it, and it ends when they and the run have."""

import os
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from epcore.footprint.meter import METER, RunMeter, Scope, find_meter

JOULES_PER_KWH = 3.6e6
STALE = 0.1  # seconds; codecarbon measures only what is older than half of this


def scope(ram_power=20.0):
    return Scope("a processor", 100.0, ram_power, [])


def test_memory_takes_its_power_for_as_long_as_it_was_measured(run):
    meter = RunMeter(run.path, scope())
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


def test_jobs_of_one_machine_read_one_meter_and_those_of_other_settings_another(run):
    early = RunMeter(run.path, scope())
    early.read()
    time.sleep(0.5)
    late, other = RunMeter(run.path, scope()), RunMeter(run.path, scope(ram_power=1.0))
    assert late.read().ram == pytest.approx(early.read().ram, rel=0.5)
    assert other.read().ram < 0.1 * early.read().ram
    for meter in (early, late, other):
        meter.stop()


def test_a_question_that_it_does_not_understand_disturbs_nobody(run):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(run.path))
        stranger.sendall(b"how much?\n")
        assert stranger.recv(1000).startswith(b'{"error": "JSONDecodeError')
    meter = RunMeter(run.path, scope())
    assert meter.stop().ram >= 0


def test_it_ends_with_the_last_job_of_a_run_that_was_killed(run):
    meter = RunMeter(run.path, scope())
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


def test_a_job_that_finds_no_run_has_a_meter_of_its_own(run, monkeypatch):
    monkeypatch.setenv(METER, str(run.path))
    meter, _ = find_meter(scope())
    assert isinstance(meter, RunMeter)
    meter.stop()
    run.kill()
    run.gone()
    own, first = find_meter(scope())
    assert not isinstance(own, RunMeter)
    time.sleep(0.2)
    assert own.stop().ram > first.ram


# NVIDIA's library for a machine of two GPUs, the second of which takes 300 W.
NVML = """
    import time
    from types import SimpleNamespace

    class NVMLError(Exception):
        pass

    NVMLError_NotSupported = NVMLError

    def nvmlInit():
        pass

    def nvmlDeviceGetCount():
        return 2

    def nvmlDeviceGetHandleByIndex(index):
        return index

    def nvmlDeviceGetUUID(handle):
        return f"GPU-{handle}a6c-11"

    def nvmlDeviceGetName(handle):
        return "a card"

    def nvmlDeviceGetMemoryInfo(handle):
        return SimpleNamespace(total=1, free=1, used=0)

    def nvmlDeviceGetEnforcedPowerLimit(handle):
        return 400_000

    def nvmlDeviceGetPowerUsage(handle):
        return 1000 * (100, 300)[handle]

    def nvmlDeviceGetTotalEnergyConsumption(handle):
        return int(1000 * (100, 300)[handle] * time.monotonic())
"""
GPU_JOB = """
    import sys, time
    from epcore.footprint.meter import Scope
    from epcore.footprint.own_meter import OwnMeter

    def watts(gpus):
        meter = OwnMeter(Scope("a processor", 100.0, 20.0, gpus))
        first = meter.read()
        time.sleep(0.5)
        last = meter.stop()
        return 20 * (last.gpu - first.gpu) / (last.ram - first.ram)

    print(watts(["GPU-1a6c-11"]), watts([]), watts(["0", "1"]), watts([]), watts(["GPU-0a6c-11"]))
    watts(["GPU-2a6c-11"])
"""


def measure_gpus(folder, *programs):
    """Watts and the last error, with cards that are not real; the rest of codecarbon is."""
    (folder / "pynvml.py").write_text(textwrap.dedent(NVML))
    for program in programs:
        (folder / program).write_text("#!/bin/sh\n")
        (folder / program).chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(folder), "PATH": str(folder)}
    command = [sys.executable, "-c", textwrap.dedent(GPU_JOB)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return [float(number) for number in done.stdout.split()], done.stderr.splitlines()[-1]


def test_gpus_are_measured_by_index_or_uuid_and_no_others(tmp_path):
    watts, error = measure_gpus(tmp_path, "nvidia-smi")
    assert watts == pytest.approx([300, 0, 400, 0, 100], rel=0.1)
    assert error == "ValueError: no counters of GPU GPU-2a6c-11"


def test_a_gpu_that_codecarbon_would_leave_out_is_an_error(tmp_path):
    watts, error = measure_gpus(tmp_path)
    assert not watts
    assert error == "ValueError: without nvidia-smi or rocm-smi codecarbon measures no GPU"
