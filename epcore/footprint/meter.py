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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

# The environment of a run's jobs: the socket of its meter.
METER = "EPCORE_METER"
PATIENCE = 30.0  # seconds; codecarbon loads at a run's first reading


@dataclass(frozen=True)
class Scope:
    """What to measure: a machine, by its powers in watts, and some of its GPUs.

    cpu_power: of all processors, None where they count their energy. gpus: indices or UUIDs as in
    CUDA_VISIBLE_DEVICES.
    """

    cpu: str
    cpu_power: float | None
    ram_power: float
    gpus: list[str]


@dataclass(frozen=True)
class Reading:
    """Of a meter: kWh since it began, without PUE, of all processors, the memory and some GPUs.

    busy: processor seconds of the whole machine, since a time of its own.
    """

    cpu: float
    ram: float
    gpu: float
    busy: float


class Meter(Protocol):
    """Measures a machine; not for two threads at once."""

    def read(self) -> Reading:
        """Up to now."""

    def stop(self) -> Reading:
        """The last reading."""


class RunMeter:
    """The meter of a run, which several jobs read: what counts is from one reading to the next."""

    def __init__(self, path: Path, scope: Scope) -> None:
        """Connects to the socket `path`.

        Raises:
            OSError: if nobody listens there.
        """
        self._question = json.dumps(asdict(scope)).encode() + b"\n"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(str(path))
        self._answers = self._socket.makefile("rb")

    def read(self) -> Reading:
        """Up to now.

        Raises:
            OSError: if the run's meter has ended or codecarbon fails there.
        """
        self._socket.sendall(self._question)
        line = self._answers.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the run's meter has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise ConnectionError(answer["error"])
        return Reading(**answer)

    def stop(self) -> Reading:
        """The last reading."""
        with self._socket, self._answers:
            return self.read()


def find_meter(scope: Scope) -> tuple[Meter, Reading]:
    """The meter for a job, and its first reading."""
    if METER in os.environ:
        with contextlib.suppress(OSError):
            meter = RunMeter(Path(os.environ[METER]), scope)
            return meter, meter.read()
    from epcore.footprint.own_meter import OwnMeter

    own = OwnMeter(scope)
    return own, own.read()
