"""Where the jobs of a scale ran and with what: a page for browsers, from the metas they wrote."""

import itertools
from pathlib import Path

import pandas as pd

from epcore.files import read_meta, write_text
from epcore.report.config import EnvironmentConfig
from epcore.report.writer import fill


def run(config: EnvironmentConfig, out: Path) -> None:
    """The stage `environment`: files and hours of each stage, and what made them."""
    jobs = []
    for path in config.metas:
        with read_meta(Path(path)) as meta:
            job = {
                "stage": str(meta["stage"]),
                "hours": float(meta["seconds"]) / 3600,
                "revision of the code": meta.get("git_revision") or "no git",
                "Python": meta.get("python"),
                **meta["packages"],
            }
        jobs.append(job | {name: meta.get(name) for name in ("device", "precision", "threads")})
    columns = dict.fromkeys(["stage", "hours", *itertools.chain(*jobs)])
    table = pd.DataFrame(jobs, columns=[*columns], dtype=object)
    hours = table.groupby("stage", sort=False)["hours"].agg(["size", "sum"])
    facts = table.drop(columns=["stage", "hours"]).melt()
    counts = facts.groupby(["variable", "value"], sort=False).size().reset_index()
    values = {
        "title": config.title,
        "work": [(name, count, f"{total:.3f}") for name, count, total in hours.itertuples()],
        "facts": list(counts.itertuples(index=False)),
    }
    write_text(out, fill("environment.html", **values))
