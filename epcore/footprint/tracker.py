"""Writes down what an attempt at a job uses, and tells the job's meta."""

import contextlib
import os
import platform
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from epcore.files import ENERGY
from epcore.footprint.config import FootprintSettings
from epcore.footprint.rows import record

# The environment of a job that is tracked: footprint.yaml as JSON, and the folder to write into.
SETTINGS, FOLDER = "EPCORE_FOOTPRINT", "EPCORE_ENERGY"
# Watts of a GPU of which no power is configured, in the hours-times-power estimate: between a V100
# (250 W) and an A100 (400 W).
USUAL_GPU_POWER = 300.0


@contextlib.contextmanager
def tracked(stage: str, job: Path, gpus: int = 0, measured: bool = False) -> Iterator[None]:
    """Tracks what is done inside, if the environment asks for it; by hand it does not.

    gpus: how many the job has; the first ones that are visible to it. measured: whether codecarbon
    measures it, as it does every job with a GPU; others count with their processor time.
    """
    if SETTINGS not in os.environ or FOLDER not in os.environ:
        yield
        return
    settings = FootprintSettings.model_validate_json(os.environ[SETTINGS])
    if not settings.tracking:
        yield
        return
    attempt = Attempt(settings, Path(os.environ[FOLDER]), stage, job, gpus)
    if measured or gpus:
        attempt.measure()
    token = ENERGY.set(attempt.facts)
    state = "failed"
    try:
        yield
        state = "finished"
    except KeyboardInterrupt:
        state = "interrupted"
        raise
    finally:
        ENERGY.reset(token)
        attempt.end(state)


class Attempt:
    """One attempt at a job; its row is what `epcore.footprint.rows` says."""

    def __init__(
        self, settings: FootprintSettings, folder: Path, stage: str, job: Path, gpus: int
    ) -> None:
        self.settings, self.folder, self.gpus = settings, folder, gpus
        self.tracker: Any = None
        self._began = time.monotonic()
        self.row: dict[str, Any] = {
            "attempt": uuid.uuid4().hex,
            "job": job.as_posix(),
            "stage": stage,
            "state": "started",
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "host": platform.node(),
            "measured_seconds": 0.0,
            "cpu_kwh": 0.0,
            "ram_kwh": 0.0,
            "gpu_kwh": 0.0,
            "counters": 0,
            "gpu_watts": gpus * (settings.gpu_power or USUAL_GPU_POWER),
            "factor": settings.carbon_intensity,
            "pue": settings.pue,
        }
        self.write()

    def measure(self) -> None:
        """Lets codecarbon measure from now on."""
        try:
            from epcore.footprint.share import start  # loads codecarbon

            self.tracker = start(self)
        except Exception as error:  # whatever it meets; no training ends for it
            problem = f"codecarbon failed ({error!r}); this job's energy is estimated"
            print(f"epcore: {problem}", file=sys.stderr)

    def facts(self) -> dict[str, Any]:
        """For the meta of what the job makes: its energy up to now, as far as it is measured."""
        if self.tracker is not None:
            self.tracker.flush()
        row = self.row
        measured = row["measured_seconds"] > 0 or row["gpu_kwh"] > 0
        kwh = row["cpu_kwh"] + row["ram_kwh"] + row["gpu_kwh"] if measured else None
        return {"attempt": row["attempt"], "job": row["job"], "kwh": kwh, "factor": row["factor"]}

    def write(self) -> None:
        """Writes the row; a job that succeeds does not fail because this cannot be written."""
        self.row |= {
            "seconds": round(time.monotonic() - self._began, 3),
            "cpu_seconds": round(sum(os.times()[:4]), 3),
            "device": _gpu_name() if self.gpus else "cpu",
        }
        try:
            record(self.folder, self.row)
        except OSError as error:  # a full disk; the job itself may not need it
            problem = f"{error.filename}: {error.strerror}; what this job used is not written"
            print(f"epcore: {problem}", file=sys.stderr)

    def end(self, state: str) -> None:
        """Writes the last row."""
        if self.tracker is not None:
            self.tracker.stop()
        self.row["state"] = state
        self.write()


def _gpu_name() -> str:
    """The GPU that this process has opened; `gpu` before that, and where its children did."""
    # Another thread may be in the middle of importing torch.
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    opened = getattr(cuda, "is_initialized", None)
    return str(cuda.get_device_name()) if cuda and opened and opened() else "gpu"
