"""The energy of one job: its share of what a meter says of the machine, and its GPUs'."""

import os
import threading
from dataclasses import dataclass

import psutil

from epcore.footprint.clock import cpu_seconds
from epcore.footprint.machine import Machine
from epcore.footprint.meter import Energies, find_meter


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
    """Reads the meter for one job.

    Two jobs side by side would both count the whole machine, so each counts its part of the
    machine's processor time from one reading to the next. A GPU is one job's alone.
    """

    def __init__(self, machine: Machine, gpus: int) -> None:
        """gpus: how many to measure, of those that are visible."""
        self._meter, energies = find_meter(machine, _visible_gpus()[:gpus])
        self._lock = threading.Lock()
        self._began = cpu_seconds()
        # At the last reading: processor seconds of the job and of the machine, energies.
        self._last = self._began, _busy_seconds(), energies
        self._cpu = self._ram = self._gpu = 0.0

    def read(self) -> Sample:
        """The sample up to now."""
        with self._lock:
            return self._sample(self._meter.read())

    def stop(self) -> Sample:
        """The last sample."""
        with self._lock:
            return self._sample(self._meter.stop())

    def _sample(self, energies: Energies) -> Sample:
        own, busy = cpu_seconds(), _busy_seconds()
        last_own, last_busy, last = self._last
        if busy > last_busy:
            share = min(1.0, max(0.0, own - last_own) / (busy - last_busy))
            self._cpu += share * (energies.cpu - last.cpu)
            self._ram += share * (energies.ram - last.ram)
            self._gpu += energies.gpu - last.gpu
            self._last = own, busy, energies
        return Sample(self._began, self._cpu, self._ram, self._gpu)


def _busy_seconds() -> float:
    """Processor time of the whole machine."""
    times = psutil.cpu_times()
    kinds = ("user", "nice", "system", "irq", "softirq")
    return float(sum(getattr(times, kind, 0.0) for kind in kinds))


def _visible_gpus() -> list[str]:
    """The ones that the job computes on come first."""
    return (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")
