"""Where a job reads the energy of its machine: from the meter of its run, or one of its own.

To load and start codecarbon takes 0.1 s of processor time, several percent of the demo's shortest
jobs, and what it measures is the machine, the same for all jobs on it. So a Snakemake run starts
one meter for its jobs (`epcore.footprint.meter_server`). A job that finds none, on another machine
of a cluster for instance, starts its own.
"""

import contextlib
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from epcore.footprint.machine import Machine

# The environment of a run's jobs: the socket of its meter.
METER = "EPCORE_METER"
PATIENCE = 30.0  # seconds; codecarbon loads at a run's first reading


@dataclass(frozen=True)
class Energies:
    """In kWh since a meter began, without PUE: of all processors, the memory and some GPUs."""

    cpu: float
    ram: float
    gpu: float


class Meter(Protocol):
    """Measures a machine; not for two threads at once."""

    def read(self) -> Energies:
        """The energies up to now."""

    def stop(self) -> Energies:
        """The last ones."""


class RunMeter:
    """The meter of a run, which several jobs read: what counts is from one reading to the next."""

    def __init__(self, path: Path, machine: Machine, gpus: list[str]) -> None:
        """Connects to the socket `path`; `gpus` as for `find_meter`.

        Raises:
            OSError: if nobody answers there.
        """
        question = {"machine": machine.model_dump(mode="json"), "gpus": gpus}
        self._question = json.dumps(question).encode() + b"\n"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(str(path))
        self._answers = self._socket.makefile("rb")

    def read(self) -> Energies:
        """The energies up to now.

        Raises:
            OSError: if the run's meter has ended or codecarbon fails there.
        """
        self._socket.sendall(self._question)
        answer = json.loads(self._answers.readline() or "null")
        if answer is None:
            raise ConnectionError("the run's meter does not answer")
        return Energies(**answer)

    def stop(self) -> Energies:
        """The last ones."""
        with self._socket, self._answers:
            return self.read()


def find_meter(machine: Machine, gpus: list[str]) -> tuple[Meter, Energies]:
    """The meter for a job, and its first reading.

    gpus: indices or UUIDs of those to measure, as in CUDA_VISIBLE_DEVICES.
    """
    if METER in os.environ:
        with contextlib.suppress(OSError):
            meter = RunMeter(Path(os.environ[METER]), machine, gpus)
            return meter, meter.read()
    from epcore.footprint.own_meter import OwnMeter

    own = OwnMeter(machine, gpus)
    return own, own.read()
