"""codecarbon around one job: its processor's share of the machine's energy, and its GPU's."""

import os
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import psutil
from codecarbon import OfflineEmissionsTracker
from codecarbon.core.hardware_cache import get_cached_tdp
from codecarbon.external.logger import logger

from epcore.footprint.clock import cpu_seconds
from epcore.footprint.machine import Machine

DAY = 86_400


@dataclass(frozen=True)
class Sample:
    """Energies of a job in kWh, without PUE; cpu and ram are its part of the whole machine's.

    before: processor seconds of the job before the sampler started.
    """

    before: float
    cpu: float
    ram: float
    gpu: float


class Sampler:
    """codecarbon's offline tracker, which looks nothing up on the network.

    Without power counters it takes the processor's power from the load of the whole machine, and
    with them the counters are the whole machine's too. Two jobs side by side would both count
    that, so each counts its part of the machine's processor time from one reading to the next.
    """

    def __init__(self, machine: Machine, gpus: int) -> None:
        """gpus: how many to measure, of those that are visible."""
        logger.setLevel("CRITICAL")
        # What codecarbon would take more than a second to find out is known of this machine.
        known: Any = SimpleNamespace(TDP=lambda: SimpleNamespace(model=machine.cpu, tdp=None))
        get_cached_tdp(known)  # type: ignore[no-untyped-call]
        # Every setting is given, else it would be read from a file in the user's home. Factor and
        # PUE are applied by the caller. `flush` alone measures, so no timer is in its way.
        self._tracker = OfflineEmissionsTracker(
            country_iso_code=None,
            region=None,
            cloud_provider=None,
            cloud_region=None,
            country_2letter_iso_code=None,
            electricitymaps_api_token=None,
            force_carbon_intensity_g_co2e_kwh=0.0,
            pue=1.0,
            force_cpu_power=None if machine.counters else machine.cpu_power,
            force_ram_power=machine.ram_power,
            gpu_ids=_visible_gpus()[:gpus],
            tracking_mode="machine",
            measure_power_secs=DAY,
            api_call_interval=-1,
            emissions_endpoint=None,
            output_methods=[],
            output_handlers=[self],
            allow_multiple_runs=True,
            log_level="critical",
        )
        self._total: Any = None
        self._lock = threading.Lock()
        self._tracker.start()
        self._began = cpu_seconds()
        # At the last reading: processor seconds of the job and of the machine, its kWh.
        self._last = self._began, _busy_seconds(), 0.0, 0.0
        self._cpu = self._ram = 0.0
        # The tracker swallows its own exceptions: this one says whether it works.
        self.read()

    def out(self, total: Any, delta: Any) -> None:
        """Called by the tracker with its totals."""
        self._total = total

    def exit(self) -> None:
        """Called by the tracker at its end."""

    def read(self) -> Sample:
        """The sample up to now."""
        with self._lock:
            self._tracker.flush()
            return self._sample()

    def stop(self) -> Sample:
        """The last sample."""
        with self._lock:
            self._tracker.stop()
            return self._sample()

    def _sample(self) -> Sample:
        own, busy = cpu_seconds(), _busy_seconds()
        cpu, ram = self._total.cpu_energy, self._total.ram_energy
        last_own, last_busy, last_cpu, last_ram = self._last
        if busy > last_busy:
            share = min(1.0, max(0.0, own - last_own) / (busy - last_busy))
            self._cpu += share * (cpu - last_cpu)
            self._ram += share * (ram - last_ram)
            self._last = own, busy, cpu, ram
        return Sample(self._began, self._cpu, self._ram, self._total.gpu_energy)


def _busy_seconds() -> float:
    """Processor time of the whole machine."""
    times = psutil.cpu_times()
    kinds = ("user", "nice", "system", "irq", "softirq")
    return float(sum(getattr(times, kind, 0.0) for kind in kinds))


def _visible_gpus() -> list[str]:
    """The ones that the job computes on come first."""
    return (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")
