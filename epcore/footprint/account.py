"""What jobs, rules, tables and figures used: sums over attempts."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from epcore.files import meta_of
from epcore.footprint.config import Co2Config


def account(config: Co2Config, results: Path, attempts: pd.DataFrame) -> pd.DataFrame:
    """What the attempts at a scale's jobs used.

    Args:
        config: the files of the tables and figures.
        results: the folder of the scale, whose meta files say what is made of what.
        attempts: as `epcore.footprint.energy.read` has them.

    Returns:
        A row for each job, rule, table and figure, and one in total, with the columns level, name,
        rule, attempts, unfinished, hours, cpu_hours, kwh, measured_kwh, kg, impact_kg (hours times
        the GPUs' power at full load times the factor) and device. A table or figure, as far as it
        was made, counts every job that it is made of, what several share for each of them. It
        waits for embeddings that only others test; those it does not count.
    """
    metas = dict(_metas(results))
    products = [("table", *table) for table in config.tables.items()]
    products += [("figure", *figure) for figure in config.figures.items()]
    jobs = set(attempts["job"])
    parts = [("job", name, part) for name, part in attempts.groupby("job")]
    parts += [("rule", name, part) for name, part in attempts.groupby("stage", sort=False)]
    for level, name, file in products:
        if file in jobs:
            part = attempts[attempts["job"].isin(jobs_below(file, metas))]
            parts.append((level, name, part))
    rows = [_sums(*part) for part in [*parts, ("total", "", attempts)]]
    return pd.DataFrame(rows)


def _sums(level: str, name: Any, attempts: pd.DataFrame) -> dict[str, Any]:
    rules = attempts["stage"].unique() if level in ("job", "rule") else ()
    impact = attempts["seconds"] / 3600 * attempts["gpu_watts"] / 1000 * attempts["factor"]
    return {
        "level": level,
        "name": name,
        "rule": " ".join(rules),
        "attempts": len(attempts),
        "unfinished": int((attempts["state"] != "finished").sum()),
        "hours": attempts["seconds"].sum() / 3600,
        "cpu_hours": attempts["cpu_seconds"].sum() / 3600,
        **attempts[["kwh", "measured_kwh", "kg"]].sum(),
        "impact_kg": impact.sum(),
        "device": "; ".join(sorted(attempts["device"].unique())),
    }


def _metas(results: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The meta file of each file below `results`.

    It names the files that were made, those that they were made from, and the job that made them.
    """
    for path in sorted(results.rglob("*.meta.json")):
        # Torn or foreign: who reads its files will say so.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            meta = json.loads(path.read_text(encoding="utf-8"))
            for name in (path.name, *meta["made"]):
                yield (path.parent / name).as_posix(), meta


def jobs_below(file: str, metas: dict[str, dict[str, Any]]) -> set[str]:
    """The jobs that made a file and, all the way down, what it is made from."""
    jobs: set[str] = set()
    visited: set[str] = set()
    pending = [str(meta_of(Path(file))), file]
    while pending:
        if (path := pending.pop()) not in visited:
            visited.add(path)
            meta = metas.get(path, {})
            jobs.add(meta.get("energy", {}).get("job", path))
            pending += meta.get("inputs", _sources(path))
    return jobs


def _sources(path: str) -> list[str]:
    """The receipts that a store, which has no meta file, was built from; of other files nothing."""
    if Path(path).name != "store.json":
        return []
    with contextlib.suppress(OSError, ValueError, LookupError):
        origin = json.loads(Path(path).read_text(encoding="utf-8"))["provenance"]
        receipts = Path(path).parents[2] / "sources"  # results/<scale>/data/<name>/store.json
        return [(receipts / f"{name}.json").as_posix() for name in origin["sources"]]
    return []
