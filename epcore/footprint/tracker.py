"""Measures an attempt at a job, writes it into the ledger, and tells the job's meta."""

import contextlib
import math
import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epcore.files import ENERGY
from epcore.footprint.clock import cpu_seconds
from epcore.footprint.config import FootprintSettings
from epcore.footprint.ledger import Entry, State, append
from epcore.footprint.machine import factor_source, known_machine, outside_slurm

if TYPE_CHECKING:
    from epcore.footprint.meter import Meter, Sample

# The environment of a job that is tracked: footprint.yaml as JSON, and the ledger to write.
SETTINGS, LEDGER = "EPCORE_FOOTPRINT", "EPCORE_LEDGER"
LONGEST_PAUSE = 120.0  # seconds between two lines of the ledger
JOULES_PER_KWH = 3.6e6
# Of a GPU of which no power is configured, in the hours-times-power estimate and where codecarbon
# does not run: between a V100 (250 W) and an A100 (400 W).
USUAL_GPU_POWER = 300.0


@contextlib.contextmanager
def tracked(stage: str, job: Path, gpus: int = 0, measured: bool = False) -> Iterator[None]:
    """Tracks what is done inside, if the environment asks for it; by hand it does not.

    gpus: how many the job has; the first ones that are visible to it. measured: whether codecarbon
    measures it; other stages are estimated from their processor time.
    """
    if SETTINGS not in os.environ or LEDGER not in os.environ:
        yield
        return
    settings = FootprintSettings.model_validate_json(os.environ[SETTINGS])
    if not settings.tracking:
        yield
        return
    attempt = Attempt(settings, Path(os.environ[LEDGER]), stage, job, gpus, measured)
    token = ENERGY.set(attempt.facts)
    try:
        yield
    except KeyboardInterrupt:
        attempt.end("interrupted")
        raise
    except BaseException:
        attempt.end("failed")
        raise
    else:
        attempt.end("finished")
    finally:
        ENERGY.reset(token)


class Attempt:
    """One attempt at a job.

    Trainings, embeddings and evaluations are measured by codecarbon from their beginning. Other
    stages, and the start of the process before that, are estimated from their processor time and
    the machine's power. benchmarks/tracking.py measures what this costs.
    """

    def __init__(
        self,
        settings: FootprintSettings,
        ledger: Path,
        stage: str,
        job: Path,
        gpus: int,
        measured: bool,
    ) -> None:
        self.settings, self.ledger, self.stage, self.job = settings, ledger, stage, job
        self.gpus = gpus
        self.name = uuid.uuid4().hex
        with outside_slurm():
            self.machine = known_machine(settings, ledger.parent / "machines")
            self._began = time.monotonic()
            self._write("started")
            self._meter = self._start_meter() if measured else None
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def facts(self) -> dict[str, Any]:
        """For the meta of what the job makes: its energy up to now."""
        entry = self._entry("running", self._sample())
        keys = ("attempt", "kwh", "measured_kwh", "kg", "factor", "seconds", "method")
        return {name: getattr(entry, name) for name in keys}

    def end(self, state: State) -> None:
        """Writes the last line."""
        self._ended.set()
        self._watcher.join()
        self._write(state, self._sample(last=True))

    def _watch(self) -> None:
        """Writes lines at growing intervals."""
        line, pause = 2.0, 2.0
        while not self._ended.wait(max(0.0, line - (time.monotonic() - self._began))):
            self._write("running", self._sample())
            line, pause = line + pause, min(2 * pause, LONGEST_PAUSE)

    def _start_meter(self) -> "Meter | None":
        try:
            from epcore.footprint.meter import Meter  # loads codecarbon

            return Meter(self.machine, self.gpus)
        except Exception as error:  # whatever it meets; no training ends for it
            self._give_up(error)
            return None

    def _sample(self, last: bool = False) -> "Sample | None":
        """What codecarbon says, if it runs."""
        if self._meter is None:
            return None
        try:
            sample = self._meter.read(last)
            if not all(0 <= amount < math.inf for amount in astuple(sample)):
                raise ValueError(sample)
            return sample
        except Exception as error:  # as above
            self._give_up(error)
            return None

    def _give_up(self, error: Exception) -> None:
        self._meter = None
        problem = f"codecarbon failed ({error!r}); this job's energy is estimated"
        print(f"epcore: {problem}", file=sys.stderr)

    def _write(self, state: State, sample: "Sample | None" = None) -> None:
        try:
            append(self.ledger, self._entry(state, sample))
        except OSError as error:  # a full disk; the job itself may not need it
            problem = f"ledger {self.ledger}: {error.strerror}; what this job used is not written"
            print(f"epcore: {problem}", file=sys.stderr)

    def _entry(self, state: State, sample: "Sample | None") -> Entry:
        machine, pue = self.machine, self.settings.pue
        seconds, own = time.monotonic() - self._began, cpu_seconds(self.gpus > 1)
        power = self.gpus * (self.settings.gpu_power or USUAL_GPU_POWER)
        gpu_kwh = power * seconds / JOULES_PER_KWH
        cpu_kwh = own * machine.cpu_power / machine.cpus / JOULES_PER_KWH
        if sample is None:
            method = "processor time times power"
            kwh, measured = own * machine.watts_per_core / JOULES_PER_KWH + gpu_kwh, 0.0
        else:
            method = "codecarbon, " + ("counters" if sample.counters else "load of the machine")
            before = sample.before * machine.watts_per_core / JOULES_PER_KWH
            kwh = before + sample.cpu + sample.ram + sample.gpu
            measured = (sample.cpu if sample.counters else 0.0) + sample.gpu
            method += " and the GPU's counters" if self.gpus else ""
        return Entry(
            attempt=self.name,
            job=self.job.as_posix(),
            stage=self.stage,
            state=state,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            host=platform.node(),
            device=_gpu_name() if self.gpus else "cpu",
            seconds=round(seconds, 3),
            cpu_seconds=round(own, 3),
            kwh=kwh * pue,
            measured_kwh=measured * pue,
            tdp_kwh=gpu_kwh if self.gpus else cpu_kwh,
            kg=kwh * pue * machine.factor,
            factor=machine.factor,
            method=method,
            pue=pue,
            factor_source=factor_source(self.settings),
        )


def _gpu_name() -> str:
    """The GPU that this process has opened; `gpu` before that, and where its children did."""
    # Another thread may be in the middle of importing torch.
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    opened = getattr(cuda, "is_initialized", None)
    return str(cuda.get_device_name()) if cuda and opened and opened() else "gpu"
