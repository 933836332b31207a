"""The energy of one job: its part of what codecarbon's offline tracker says of the machine."""

import os
import threading
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import psutil
from codecarbon import OfflineEmissionsTracker
from codecarbon.core import cpu as processors
from codecarbon.core.gpu import AllGPUDevices, is_nvidia_system, is_rocm_system
from codecarbon.core.hardware_cache import clear_cache, get_cached_tdp
from codecarbon.external import hardware
from codecarbon.external.logger import logger

from epcore.footprint.clock import cpu_seconds
from epcore.footprint.machine import Machine

YEAR = 365 * 86_400  # seconds, longer than any job


@dataclass(frozen=True)
class Sample:
    """Energies of a job in kWh, without PUE; cpu and ram are its part of the whole machine's.

    before: processor seconds of the job before the meter started. counters: whether cpu is of power
    counters.
    """

    before: float
    cpu: float
    ram: float
    gpu: float
    counters: bool


class Meter:
    """Measures one job's part of this machine's processors and memory, and its GPUs.

    The processors' energy is that of their power counters where codecarbon can read them, else
    their power at full load times (0.1 + 0.9 load³), of the whole machine's load. The memory's
    power is constant, a GPU has a counter. It asks no network and writes no file.

    From one reading to the next the job is given its part of the machine's processor time, in the
    energy of the processors and of the memory, idle power included: all jobs of a machine together
    count at most what the machine used. A GPU is one job's alone and counts whole. codecarbon's own
    mode for a process is not used: it leaves out children that have ended, gives each process the
    whole power of the memory, and with power counters the whole processors too.
    """

    def __init__(self, machine: Machine, gpus: int) -> None:
        """Starts the tracker; gpus: how many to measure, of those that are visible.

        Raises:
            ValueError: for a GPU that it cannot measure.
        """
        logger.setLevel("CRITICAL")
        counters = machine.settings.cpu_power is None and processors.is_rapl_available()
        # It would take "all GPUs" for "none" where an earlier tracker of this process had none.
        clear_cache()
        # The processors' power is known or counted; codecarbon would take almost a second of
        # processor time to look it up, and to find out their name.
        unnamed: Any = SimpleNamespace(TDP=lambda: SimpleNamespace(model="", tdp=None))
        get_cached_tdp(unnamed)  # type: ignore[no-untyped-call]
        hardware.detect_cpu_model = lambda: ""  # type: ignore[assignment,attr-defined]
        # What is not given here would be read from a file in the user's home. PUE and factor are
        # applied by the caller. `flush` alone measures, so no timer is in its way.
        self._tracker = OfflineEmissionsTracker(
            country_iso_code=None,
            region=None,
            cloud_provider=None,
            cloud_region=None,
            country_2letter_iso_code=None,
            electricitymaps_api_token=None,
            force_carbon_intensity_g_co2e_kwh=0.0,
            pue=1.0,
            force_cpu_power=None if counters else machine.cpu_power,
            force_ram_power=machine.ram_power,
            rapl_prefer_psys=False,
            gpu_ids=_indices(_visible_gpus()[:gpus]) if gpus else [],
            tracking_mode="machine",
            measure_power_secs=YEAR,
            api_call_interval=-1,
            emissions_endpoint=None,
            output_dir=".",
            output_methods=[],
            output_handlers=[self],
            allow_multiple_runs=True,
            log_level="critical",
        )
        self._total: Any = None
        self._tracker.start()
        self._lock, self._team = threading.Lock(), gpus > 1
        self._last = self._now()
        self._sample = Sample(self._last[-1], 0.0, 0.0, 0.0, counters)

    def out(self, total: Any, delta: Any) -> None:
        """Called by the tracker with its totals."""
        self._total = total

    def exit(self) -> None:
        """Called by the tracker at its end."""

    def read(self, last: bool = False) -> Sample:
        """The sample up to now; the last one stops the tracker.

        Raises:
            RuntimeError: if the tracker has failed.
        """
        with self._lock:
            now = self._now(last)
            cpu, ram, gpu, busy, own = (a - b for a, b in zip(now, self._last, strict=True))
            if busy > 0:
                share, before = min(1.0, max(0.0, own) / busy), self._sample
                self._last = now
                self._sample = replace(
                    before,
                    cpu=before.cpu + share * cpu,
                    ram=before.ram + share * ram,
                    gpu=before.gpu + gpu,
                )
            return self._sample

    def _now(self, last: bool = False) -> tuple[float, float, float, float, float]:
        """Energy of processors, memory and GPUs, in kWh; processor seconds of all and of this job.

        Each since a moment of its own.
        """
        self._total = None
        if last:
            self._tracker.stop()
        else:
            self._tracker.flush()
            # One number of each second, and never read here: a training may take weeks.
            self._tracker._clear_utilization_history()
        total = self._total
        if total is None:  # it swallows its own exceptions
            raise RuntimeError("its tracker gives no energies")
        busy, own = _busy_seconds(), cpu_seconds(self._team)
        return total.cpu_energy, total.ram_energy, total.gpu_energy, busy, own


def _visible_gpus() -> list[str]:
    """The ones that the job computes on come first."""
    return (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")


def _busy_seconds() -> float:
    """Processor time of the whole machine."""
    times = psutil.cpu_times()
    kinds = ("user", "nice", "system", "irq", "softirq")
    return float(sum(getattr(times, kind, 0.0) for kind in kinds))


def _indices(gpus: list[str]) -> list[int]:
    """Numbers of GPUs as NVML counts; codecarbon itself does not find the UUIDs of NVIDIA's."""
    if not (is_nvidia_system() or is_rocm_system()):
        raise ValueError("without nvidia-smi or rocm-smi codecarbon measures no GPU")
    indices = {gpu["uuid"]: gpu["gpu_index"] for gpu in AllGPUDevices().get_gpu_static_info()}
    indices |= {str(index): index for index in indices.values()}
    if missing := [gpu for gpu in gpus if gpu not in indices]:
        raise ValueError(f"no counters of GPU {', '.join(missing)}")
    return [indices[gpu] for gpu in gpus]
