"""Where the jobs of a scale ran and with what: a page for browsers, from the metas they wrote."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from epcore.files import read_meta, write_text
from epcore.report.config import EnvironmentConfig
from epcore.report.writer import fill


def facts_of(metas: Iterable[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Fact -> value -> number of jobs that say so."""
    counts: dict[str, Counter[str]] = {}
    for meta in metas:
        facts = {
            "revision of the code": meta.get("git_revision") or "no git",
            "Python": meta.get("python"),
            **meta["packages"],
            "device": meta.get("device"),
            "precision": meta.get("precision"),
            "threads": meta.get("threads"),
        }
        for fact, value in facts.items():
            if value is not None:
                counts.setdefault(fact, Counter())[str(value)] += 1
    return counts


def page(config: EnvironmentConfig, metas: list[dict[str, Any]]) -> str:
    """Two tables: files and hours of each stage, and what made them."""
    seconds: dict[str, list[float]] = {}
    for meta in metas:
        seconds.setdefault(str(meta["stage"]), []).append(float(meta["seconds"]))
    work = [(name, len(of), f"{sum(of) / 3600:.3f}") for name, of in seconds.items()]
    facts = [
        (fact, value, count)
        for fact, values in facts_of(metas).items()
        for value, count in sorted(values.items())
    ]
    return fill("environment.html", title=config.title, work=work, facts=facts)


def run(config: EnvironmentConfig, out: Path) -> None:
    """The stage `environment`."""
    metas = []
    for path in config.metas:
        with read_meta(Path(path)) as meta:
            meta["stage"], float(meta["seconds"]), meta["packages"].items()
        metas.append(meta)
    write_text(out, page(config, metas))
