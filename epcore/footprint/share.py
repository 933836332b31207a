"""A job's share of what codecarbon's offline tracker says of the machine."""

import contextlib
import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from epcore.footprint.tracker import Attempt

INTERVAL, BETWEEN_ROWS = 15, 4  # seconds between two measurements, and how many make a row
# codecarbon looks for a SLURM job when it is imported, and would take the memory of the job for
# that of the machine.
SLURM = ("SLURM_JOB_ID", "SLURM_JOBID")


def start(attempt: "Attempt") -> Any:
    """A tracker of codecarbon's that has started and adds to the attempt's row what it measures.

    It measures the whole machine: the processors by their power counters or, where it cannot read
    them, by their load; the memory by its size; GPUs by their counters. It asks no network and
    writes no file. Its own mode for a process is not used: it leaves out children that have ended,
    and gives each process the whole power of the memory.
    """
    settings = attempt.settings
    with _outside_slurm():
        from codecarbon import OfflineEmissionsTracker
        from codecarbon.core.cpu import is_rapl_available
        from codecarbon.external.logger import logger

        logger.setLevel("CRITICAL")
        attempt.row["counters"] = int(settings.cpu_power is None and is_rapl_available())

        share = Share(attempt)
        tracker = OfflineEmissionsTracker(
            project_name=attempt.row["job"],
            country_iso_code="CAN",  # whose factor is not used
            force_carbon_intensity_g_co2e_kwh=1000 * settings.carbon_intensity,
            pue=settings.pue,
            force_cpu_power=settings.cpu_power,
            force_ram_power=settings.ram_power,
            gpu_ids=_visible_gpus()[: attempt.gpus],
            tracking_mode="machine",
            measure_power_secs=INTERVAL,
            api_call_interval=BETWEEN_ROWS,
            output_methods=[],
            output_dir=".",
            output_handlers=[share],
            allow_multiple_runs=True,
            log_level="critical",
        )
        tracker.start()
    share.begin()
    return tracker


class Share:
    """An output of codecarbon's, called by the tracker with its totals and what they grew by.

    The job is given its part of the machine's processor time in the energy of the processors and
    of the memory, idle power included: all jobs of a machine together count at most what the
    machine used. A GPU is one job's alone and counts whole.
    """

    def __init__(self, attempt: "Attempt") -> None:
        self.attempt = attempt
        self.begin()

    def begin(self) -> None:
        """Counts processor time from now on; the tracker has no energy of its own start."""
        self._last = _busy_seconds(), _own_seconds()

    def out(self, total: Any, delta: Any) -> None:
        """Adds the job's share to the attempt's row, and writes it."""
        now = _busy_seconds(), _own_seconds()
        busy, of_job = (after - before for after, before in zip(now, self._last, strict=True))
        self._last, row = now, self.attempt.row
        share = min(1.0, max(0.0, of_job) / busy) if busy > 0 else 0.0
        added = {
            "measured_seconds": of_job,
            "cpu_kwh": share * delta.cpu_energy,
            "ram_kwh": share * delta.ram_energy,
            "gpu_kwh": delta.gpu_energy,
        }
        if all(0 <= amount < math.inf for amount in added.values()):
            row |= {name: row[name] + amount for name, amount in added.items()}
        row["state"] = "running"
        self.attempt.write()

    live_out = out

    def exit(self) -> None:
        """Called by the tracker at its end."""


def _busy_seconds() -> float:
    """Processor time of the whole machine."""
    times = psutil.cpu_times()
    kinds = ("user", "nice", "system", "irq", "softirq")
    return float(sum(getattr(times, kind, 0.0) for kind in kinds))


def _own_seconds() -> float:
    """Processor time of this process and of its children, those that have ended included."""
    total = 0.0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            times = child.cpu_times()
            total += times.user + times.system
    return total + sum(os.times()[:4])


def _visible_gpus() -> list[str]:
    """The ones that the job computes on come first."""
    return (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")


@contextlib.contextmanager
def _outside_slurm() -> Iterator[None]:
    hidden = {name: os.environ.pop(name) for name in SLURM if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)
