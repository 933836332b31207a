"""What jobs took: medians by stage, backbone and device, over a scale's ledger."""

import csv
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from epcore.errors import UserError
from epcore.footprint.ledger import Entry

COLUMNS = ("scale", "stage", "backbone", "device", "jobs", "seconds", "kwh")
Key = tuple[str, str, str]  # stage, backbone (empty where there is none), cpu or gpu


class Median(NamedTuple):
    """Of `jobs` jobs: seconds by the clock, and kWh."""

    jobs: int
    seconds: float
    kwh: float


def medians(entries: Iterable[Entry]) -> dict[Key, Median]:
    """Over the jobs that finished; each counts with its attempts that failed before."""
    tried: dict[str, list[Entry]] = defaultdict(list)
    used: dict[Key, list[tuple[float, float]]] = defaultdict(list)
    for entry in entries:
        tried[entry.job].append(entry)
        if entry.state == "finished":
            attempts = tried.pop(entry.job)
            place = re.match(r"(?:[^/]+/){4}([^/]+)/(?:[^/]+/)?s\d+/", entry.job)
            key = entry.stage, place[1] if place else "", "cpu" if entry.device == "cpu" else "gpu"
            used[key].append((sum(e.seconds for e in attempts), sum(e.kwh for e in attempts)))
    return {
        key: Median(len(jobs), median(s for s, _ in jobs), median(kwh for _, kwh in jobs))
        for key, jobs in sorted(used.items())
    }


def read_medians(file: Path, scale: str) -> dict[Key, Median]:
    """Those of a scale, from a file with `COLUMNS` (.csv); none without the file.

    Raises:
        UserError: if it is damaged.
    """
    rows = csv.reader(file.read_text(encoding="utf-8").splitlines() if file.exists() else [])
    own = [row[1:] for row in rows if row[:1] == [scale]]
    try:
        return {(s, b, d): Median(int(jobs), float(t), float(k)) for s, b, d, jobs, t, k in own}
    except ValueError as error:
        raise UserError(f"{file}: a line is not {', '.join(COLUMNS)} ({error})") from None
