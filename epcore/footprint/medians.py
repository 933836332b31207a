"""What jobs took: medians over the attempts of a scale, of jobs that are alike."""

import csv
import re
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pandas as pd

from epcore.errors import UserError

# results/<scale>/<kind>/<data set>/<backbone>/<recipe>/s<seed>/, ImageNet-FS without a recipe, or
# the data set alone.
JOB = re.compile(r"(?:[^/]+/){3}([^/]+)/(?:([^/]+)/(?:([^/]+)/)?s\d+/)?")


class Key(NamedTuple):
    """Jobs that are alike; what a job has not is empty. device: cpu or gpu.

    Data sets differ tenfold, and so do compared methods, which are recipes; other recipes do not.
    """

    stage: str
    dataset: str
    backbone: str
    recipe: str
    device: str

    @classmethod
    def of(cls, stage: str, dataset: str, backbone: str, recipe: str, device: str) -> "Key":
        """The key of a job; the recipe counts in stages of compared methods alone."""
        return cls(stage, dataset, backbone, recipe if stage.startswith("meta-") else "", device)

    @property
    def pooled(self) -> "Key":
        """The key of jobs of any data set and method."""
        return self._replace(dataset="", recipe="")


COLUMNS = ("scale", *Key._fields, "jobs", "seconds", "kwh")


class Median(NamedTuple):
    """The median over `jobs` jobs of seconds by the clock, and of kWh."""

    jobs: int
    seconds: float
    kwh: float


def medians(attempts: pd.DataFrame) -> dict[Key, Median]:
    """Over the jobs that finished, and pooled; each counts with its attempts that failed before."""
    finished = attempts["state"] == "finished"
    # How many attempts at the same job finished before this one.
    turn = finished.groupby(attempts["job"]).cumsum() - finished
    used: dict[Key, list[tuple[float, float]]] = defaultdict(list)
    for (job, _), tried in attempts.groupby(["job", turn]):
        last, place = tried.iloc[-1], JOB.match(str(job))
        if last["state"] == "finished":
            dataset, backbone, recipe = place.groups("") if place else ("", "", "")
            device = "cpu" if last["device"] == "cpu" else "gpu"
            key = Key.of(last["stage"], dataset, backbone, recipe, device)
            for level in {key, key.pooled}:
                used[level].append((tried["seconds"].sum(), tried["kwh"].sum()))
    return {
        key: Median(len(jobs), median(s for s, _ in jobs), median(kwh for _, kwh in jobs))
        for key, jobs in sorted(used.items())
    }


def read_medians(file: Path, scale: str) -> dict[Key, Median]:
    """The medians of a scale from a CSV file with `COLUMNS`; empty if there is no file.

    Raises:
        UserError: if it is damaged.
    """
    rows = csv.reader(())
    try:
        rows = csv.reader(file.read_text(encoding="utf-8").splitlines() if file.exists() else ())
        of_scale = (
            row[1:] for row in rows if row[:1] == [scale]
        )  # one by one, for the line's number
        return {
            Key(*names): Median(int(jobs), float(seconds), float(kwh))
            for *names, jobs, seconds, kwh in of_scale
        }
    except (TypeError, ValueError, csv.Error) as error:
        line = f", line {rows.line_num}" if rows.line_num else ""
        raise UserError(f"{file}{line}: it is not {', '.join(COLUMNS)} ({error})") from None
