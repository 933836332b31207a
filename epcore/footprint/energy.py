"""What all attempts at a scale's jobs used, in one frame."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd

from epcore.errors import UserError
from epcore.footprint.rows import NUMBERS, TEXTS, file_of, rows_of

JOULES_PER_KWH = 3.6e6


def read(folder: Path) -> pd.DataFrame:
    """All attempts at a scale's jobs by their start, with the columns kwh, measured_kwh and kg.

    Raises:
        UserError: if no job was tracked.
    """
    rows = [row for path in sorted(folder.rglob("*.csv")) for row in rows_of(path)]
    if not rows:
        raise UserError(
            f"{folder} has no energies of jobs, which write them while config/footprint.yaml "
            "has `tracking: true`",
            "run a job first, for example snakemake --cores 2 tables/main.tex",
        )
    return frame_of(rows)


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Attempts by their start; see `read`.

    What codecarbon did not measure, short jobs and the start of every process, is estimated: its
    processor time costs as much as measured processor time on the same host, else on all hosts.
    """
    frame = pd.DataFrame(rows, columns=[*TEXTS, *NUMBERS])
    frame[list(NUMBERS)] = frame[list(NUMBERS)].apply(pd.to_numeric)
    frame = frame.sort_values(["at", "attempt"], ignore_index=True)
    job_kwh = frame["cpu_kwh"] + frame["ram_kwh"]
    of_host = job_kwh.groupby(frame["host"]).transform("sum") / frame.groupby("host")[
        "measured_seconds"
    ].transform("sum")
    rate = of_host.fillna(job_kwh.sum() / (frame["measured_seconds"].sum() or float("nan"))).fillna(
        0
    )
    estimated = (frame["cpu_seconds"] - frame["measured_seconds"]).clip(lower=0) * rate
    # A GPU whose counters say nothing, or are not there, counts with its power at full load.
    full_load = frame["gpu_watts"] * frame["seconds"] / JOULES_PER_KWH * frame["pue"]
    gpus = frame["gpu_kwh"].where(frame["gpu_kwh"] > 0, full_load)
    frame["kwh"] = job_kwh + gpus + estimated
    frame["measured_kwh"] = frame["cpu_kwh"] * frame["counters"] + frame["gpu_kwh"]
    frame["kg"] = frame["kwh"] * frame["factor"]
    return frame


def gone_on_from(folder: Path, job: str, attempt: str) -> pd.DataFrame:
    """The attempts at a job whose saved state an attempt went on from, last one first.

    Those before it that did not finish. One right before it that did finish counts too, with those
    before that one: its file was lost, and made again from the last state. Whether settings were
    edited in between is not known, so attempts with others count too.
    """
    rows = sorted(rows_of(file_of(folder, job)), key=lambda row: (row["at"], row["attempt"]))
    names = [row["attempt"] for row in rows]
    before = rows[: names.index(attempt)][::-1] if attempt in names else []
    return frame_of(
        before[:1] + list(takewhile(lambda row: row["state"] != "finished", before[1:]))
    )
