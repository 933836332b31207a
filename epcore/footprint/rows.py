"""A CSV file for each job, with a row of what each attempt at it used.

A row is written when an attempt starts, every minute while codecarbon measures it, and at its end.
So an attempt that was killed counts with what it had used a minute before.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epcore.files import atomic

# attempt: its unique name. job: the file that it makes. state: started, running, finished, failed
# or interrupted. at: time of its start, UTC. seconds: by the clock; cpu_seconds: of its processors,
# of which codecarbon measured the energy of measured_seconds. Energies in kWh, with the PUE;
# counters: whether the processor's comes from power counters. gpu_watts: of its GPUs at full load.
# factor: kg of CO2-equivalent per kWh.
TEXTS = ("attempt", "job", "stage", "state", "at", "host", "device")
NUMBERS = (
    "seconds", "cpu_seconds", "measured_seconds", "cpu_kwh", "ram_kwh", "gpu_kwh", "counters",
    "gpu_watts", "factor", "pue",
)  # fmt: skip


def file_of(folder: Path, job: Path | str) -> Path:
    """The file of a job's attempts, below the folder of a scale's energies."""
    return folder / f"{str(job).lstrip('/')}.csv"


def record(folder: Path, row: Mapping[str, Any]) -> None:
    """Writes an attempt's row, in place of what was known of it before."""
    path = file_of(folder, row["job"])
    earlier = [line for line in rows_of(path) if line["attempt"] != row["attempt"]]
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file, (*TEXTS, *NUMBERS), extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows([*earlier, row])


def rows_of(path: Path) -> list[dict[str, Any]]:
    """What a file of attempts says; nothing if there is none."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
