"""Measures an attempt at a job, writes it into the ledger, and tells the job's meta."""

import contextlib
import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epcore.files import ENERGY
from epcore.footprint.clock import cpu_seconds
from epcore.footprint.ledger import Entry, State, append
from epcore.footprint.machine import known_machine
from epcore.plan.footprint import FootprintSettings, read_footprint_file

if TYPE_CHECKING:
    from epcore.footprint.sampler import Sample, Sampler

# The environment of a job that is tracked: footprint.yaml, and the ledger to write.
SETTINGS, LEDGER = "EPCORE_FOOTPRINT", "EPCORE_LEDGER"
LONGEST_PAUSE = 120.0  # seconds between two lines of the ledger
JOULES_PER_KWH = 3.6e6
# A job that ended before codecarbon started, on a GPU of which no power is configured: between a
# V100 (250 W) and an A100 (400 W).
USUAL_GPU_POWER = 300.0


@contextlib.contextmanager
def tracked(stage: str, job: Path) -> Iterator[None]:
    """Tracks what is done inside, if the environment asks for it; by hand it does not.

    Raises:
        UserError: if footprint.yaml is wrong.
    """
    if SETTINGS not in os.environ or LEDGER not in os.environ:
        yield
        return
    settings = read_footprint_file(Path(os.environ[SETTINGS]))
    if not settings.tracking:
        yield
        return
    attempt = Attempt(settings, Path(os.environ[LEDGER]), stage, job)
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

    codecarbon starts only after `measure_after` seconds, because starting it takes about a second
    of processor time; what came before is scaled from what it measures. A shorter attempt is
    estimated from its processor time and the machine's power. Measured by benchmarks/tracking.py,
    median of 7 pairs on two cores of an Intel Xeon: 10 ms without codecarbon, 0.50 % of a job of
    2 s; 0.81 s with it, 0.45 % of a job of 180 s.
    """

    def __init__(self, settings: FootprintSettings, ledger: Path, stage: str, job: Path) -> None:
        self.settings, self.ledger, self.stage, self.job = settings, ledger, stage, job
        self.name = uuid.uuid4().hex
        self.machine = known_machine(settings, ledger.parent / "machines")
        self._sampler: Sampler | None = None
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._write("started")
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def facts(self) -> dict[str, Any]:
        """For the meta of what the job makes: its energy up to now."""
        entry = self._entry("running", self._sample())
        known = ("attempt", "kwh", "measured_kwh", "kg", "factor", "seconds", "method")
        return {name: getattr(entry, name) for name in known}

    def end(self, state: State) -> None:
        """Writes the last line."""
        self._ended.set()
        self._watcher.join()
        self._write(state, self._sample(last=True))

    def _watch(self) -> None:
        """Writes lines at growing intervals and starts codecarbon when it is time."""
        line, pause, sampler_due = 2.0, 2.0, self.settings.measure_after
        while True:
            due = min(line, sampler_due)
            if self._ended.wait(max(0.0, due - (time.monotonic() - self._began))):
                return
            if due == sampler_due:
                self._start_sampler()
                sampler_due = float("inf")
            else:
                self._write("running", self._sample())
                line, pause = line + pause, min(2 * pause, LONGEST_PAUSE)

    def _start_sampler(self) -> None:
        try:
            from epcore.footprint.sampler import Sampler

            self._sampler = Sampler(self.settings, gpu=_gpu() is not None)
        except Exception as error:  # whatever it meets; no training ends for it
            self._give_up(error)

    def _sample(self, last: bool = False) -> "Sample | None":
        """What codecarbon says, if it runs."""
        if self._sampler is None:
            return None
        try:
            return self._sampler.stop() if last else self._sampler.read()
        except Exception as error:  # as above
            self._give_up(error)
            return None

    def _give_up(self, error: Exception) -> None:
        self._sampler = None
        problem = f"codecarbon failed ({error!r}); this job's energy is estimated"
        print(f"epcore: {problem}", file=sys.stderr)

    def _write(self, state: State, sample: "Sample | None" = None) -> None:
        append(self.ledger, self._entry(state, sample))

    def _entry(self, state: State, sample: "Sample | None") -> Entry:
        machine, pue, gpu = self.machine, self.settings.pue, _gpu()
        seconds, own = time.monotonic() - self._began, cpu_seconds()
        gpu_kwh = (self.settings.gpu_power or USUAL_GPU_POWER) * seconds / JOULES_PER_KWH
        tdp_kwh = gpu_kwh if gpu else own * machine.cpu_power / machine.cpus / JOULES_PER_KWH
        if sample is None or sample.own <= 0:
            method = "processor time times power"
            kwh, measured = own * machine.watts_per_core / JOULES_PER_KWH, 0.0
            kwh += gpu_kwh if gpu else 0.0
        else:
            method = "codecarbon, " + ("counters" if machine.counters else "load of the machine")
            whole = own / sample.own  # the time before codecarbon included
            kwh = (sample.cpu + sample.ram) * sample.share * whole
            measured = sample.cpu * sample.share * whole if machine.counters else 0.0
            on_gpu = sample.gpu * seconds / sample.seconds
            kwh, measured = kwh + on_gpu, measured + on_gpu
            method += " and the GPU's counters" if gpu else ""
        return Entry(
            attempt=self.name,
            job=self.job.as_posix(),
            stage=self.stage,
            state=state,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            host=platform.node(),
            device=gpu or "cpu",
            seconds=round(seconds, 3),
            cpu_seconds=round(own, 3),
            kwh=kwh * pue,
            measured_kwh=measured * pue,
            tdp_kwh=tdp_kwh,
            kg=kwh * pue * machine.factor,
            factor=machine.factor,
            method=method,
        )


def _gpu() -> str | None:
    """The name of the GPU that this process has opened, if it has."""
    # Another thread may be in the middle of importing torch.
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    opened = getattr(cuda, "is_initialized", None)
    return str(cuda.get_device_name()) if cuda and opened and opened() else None
