"""The energy of one job: its part of what a meter says of the machine, and its GPUs'."""

import os
import threading
from dataclasses import dataclass

from epcore.footprint.clock import cpu_seconds
from epcore.footprint.machine import Machine
from epcore.footprint.meter import Meter, Reading


@dataclass(frozen=True)
class Sample:
    """Energies of a job in kWh, without PUE; cpu and ram are its part of the whole machine's.

    before: processor seconds of the job before the sampler started. counters: whether cpu is of
    power counters.
    """

    before: float
    cpu: float
    ram: float
    gpu: float
    counters: bool


class Sampler:
    """Reads a meter of the machine for one job.

    From one reading to the next the job is given its part of the machine's processor time, in the
    energy of the processors and of the memory, idle power included: all jobs of a machine together
    count at most what the machine used. A GPU is one job's alone and counts whole. codecarbon's own
    mode for a process is not used: it leaves out children that have ended, gives each process the
    whole power of the memory, and with power counters the whole processors too.
    """

    def __init__(self, machine: Machine, gpus: int) -> None:
        """gpus: how many to measure, of those that are visible."""
        self._meter = Meter(machine, _visible_gpus()[:gpus])
        reading = self._meter.read()
        self._lock = threading.Lock()
        self._team = gpus > 1
        self._began = cpu_seconds(self._team)
        self._last = self._began, reading
        self._cpu = self._ram = self._gpu = 0.0

    def read(self, last: bool = False) -> Sample:
        """The sample up to now; the last one stops the meter."""
        with self._lock:
            return self._sample(self._meter.read(last))

    def _sample(self, reading: Reading) -> Sample:
        own = cpu_seconds(self._team)
        last_own, last = self._last
        if reading.busy > last.busy:
            share = min(1.0, max(0.0, own - last_own) / (reading.busy - last.busy))
            self._cpu += share * (reading.cpu - last.cpu)
            self._ram += share * (reading.ram - last.ram)
            self._gpu += reading.gpu - last.gpu
            self._last = own, reading
        return Sample(self._began, self._cpu, self._ram, self._gpu, self._meter.counters)


def _visible_gpus() -> list[str]:
    """The ones that the job computes on come first."""
    return (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")
