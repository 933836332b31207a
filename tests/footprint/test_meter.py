"""codecarbon as a meter of the machine: what it says of power that is known."""

import itertools
import os
import subprocess
import sys
import textwrap
import time

import pytest
from codecarbon import OfflineEmissionsTracker
from codecarbon.core.cpu import IntelRAPL
from codecarbon.core.util import detect_cpu_model

from epcore.footprint.meter import Meter

JOULES_PER_KWH = 3.6e6
STALE = 0.1  # seconds; codecarbon measures only what is older than half of this


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A folder where codecarbon is configured for other uses of it."""
    settings = """
        [codecarbon]
        tracking_mode = process
        force_cpu_power = 7000
        force_ram_power = 7000
        force_mode_cpu_load = true
        pue = 7
        rapl_prefer_psys = true
        gpu_ids = 0
        measure_power_secs = 0.01
        output_dir = /nowhere
        emissions_endpoint = http://localhost:1
        save_to_file = true
        log_level = debug
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".codecarbon.config").write_text(textwrap.dedent(settings))
    return tmp_path


@pytest.fixture
def whole(monkeypatch):
    """All of the machine's processor time is the job's."""
    for clock in ("_busy_seconds", "cpu_seconds"):
        ticks = itertools.count()
        monkeypatch.setattr(
            f"epcore.footprint.meter.{clock}", lambda *_, ticks=ticks: float(next(ticks))
        )


@pytest.mark.usefixtures("whole")
def test_memory_takes_its_power_for_as_long_as_it_was_measured(foreign, machine, capfd):
    meter = Meter(machine(), 0)
    before = time.monotonic()
    first = meter.read()
    after = time.monotonic()
    time.sleep(0.5)
    shortest = time.monotonic() - after
    last = meter.read(last=True)
    longest = time.monotonic() - before
    seconds = (last.ram - first.ram) * JOULES_PER_KWH / 20
    assert shortest - STALE <= seconds <= longest + STALE
    # By its model an idle processor takes a tenth of its power, and a busy one all.
    assert 0.09 * 100 * seconds <= (last.cpu - first.cpu) * JOULES_PER_KWH <= 101 * seconds
    assert last.gpu == 0
    assert [file.name for file in foreign.iterdir()] == [".codecarbon.config"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("whole")
def test_processors_with_power_counters_take_what_those_count(
    foreign, monkeypatch, machine, settings
):
    """Nor does it ask for the processor's name, which takes it most of a second."""
    counters = foreign / "rapl/intel-rapl"
    for number, (name, joules) in enumerate({"package-0": 5, "psys": 70}.items()):
        domain = counters / f"intel-rapl:{number}"
        domain.mkdir(parents=True)
        (domain / "name").write_text(name)
        (domain / "max_energy_range_uj").write_text("262143328850")
        (domain / "energy_uj").write_text(str(joules * 1_000_000))
    monkeypatch.setattr("codecarbon.core.cpu.is_rapl_available", lambda: True)
    monkeypatch.setattr(
        "codecarbon.external.hardware.IntelRAPL",
        lambda **settings: IntelRAPL(**settings | {"rapl_dir": str(counters.parent)}),
    )
    detect_cpu_model.cache_clear()
    meter = Meter(machine(settings=settings(cpu_power=None)), 0)
    first = meter.read()
    for file in counters.glob("*/energy_uj"):
        file.write_text(str(int(file.read_text()) + 1_000_000 * (3600 if ":0" in str(file) else 9)))
    time.sleep(STALE)
    last = meter.read(last=True)
    assert last.cpu - first.cpu == pytest.approx(0.001)  # 3600 J
    assert detect_cpu_model.cache_info().currsize == 0


@pytest.mark.parametrize("last", [False, True])
def test_a_tracker_that_fails_says_so(monkeypatch, machine, last):
    """codecarbon itself would go on with the energies of before."""

    def fail(_):
        raise OSError("no counters")

    meter = Meter(machine(), 0)
    meter.read()
    monkeypatch.setattr(OfflineEmissionsTracker, "_do_measurements", fail)
    time.sleep(STALE)
    with pytest.raises(RuntimeError, match="no energies"):
        meter.read(last)


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
    import itertools, os, sys, time
    from epcore.footprint import meter
    from epcore.footprint.machine import Machine

    machine = Machine.model_validate_json(sys.argv[1])

    def watts(gpus):
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
        busy, own = itertools.count(), itertools.count()
        meter._busy_seconds, meter.cpu_seconds = lambda: next(busy), lambda team: next(own)
        found = meter.Meter(machine, len(gpus))
        first = found.read()
        time.sleep(0.2)
        last = found.read(last=True)
        return 20 * (last.gpu - first.gpu) / (last.ram - first.ram)

    print(watts(["GPU-1a6c-11"]), watts([]), watts(["0", "1"]), watts([]), watts(["GPU-0a6c-11"]))
    watts(["GPU-2a6c-11"])
"""


def measure_gpus(folder, machine, *programs):
    """Watts and the last error, with cards that are not real; the rest of codecarbon is."""
    (folder / "pynvml.py").write_text(textwrap.dedent(NVML))
    for program in programs:
        (folder / program).write_text("#!/bin/sh\n")
        (folder / program).chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(folder), "PATH": str(folder)}
    command = [sys.executable, "-c", textwrap.dedent(GPU_JOB), machine.model_dump_json()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return [float(number) for number in done.stdout.split()], done.stderr.splitlines()[-1]


def test_gpus_are_measured_by_index_or_uuid_and_no_others(tmp_path, machine):
    watts, error = measure_gpus(tmp_path, machine(), "nvidia-smi")
    assert watts == pytest.approx([300, 0, 400, 0, 100], rel=0.1)
    assert error == "ValueError: no counters of GPU GPU-2a6c-11"


def test_a_gpu_that_codecarbon_would_leave_out_is_an_error(tmp_path, machine):
    watts, error = measure_gpus(tmp_path, machine())
    assert not watts
    assert error == "ValueError: without nvidia-smi or rocm-smi codecarbon measures no GPU"
