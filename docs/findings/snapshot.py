"""Takes what the pages need of a scale's results into a folder of docs/results.

    python docs/findings/snapshot.py demo --as NAME --command "snakemake --cores 2 all"

That is tables, numbers of figures, curves of pretrainings, and the tests of compared methods. The
file source.json beside them says by which command, code and machine they were made.
"""

import argparse
import csv
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cells import ROOT, SNAPSHOTS, lines

FIGURES = ("two-moons", "decision-boundary", "interpolation", "alpha")


def take(scale: str, name: str, command: str) -> None:
    """Copies or collects them."""
    results, folder = ROOT / "results" / scale, SNAPSHOTS / name
    folder.mkdir(parents=True, exist_ok=True)
    figures = (results / f"figures/{figure}.csv" for figure in FIGURES)
    for file in (*sorted(results.glob("tables/*.csv")), *figures):
        if file.is_file():
            shutil.copy(file, folder)
    _write(
        folder / "pretraining.csv",
        ["dataset", "backbone", "recipe", "seed", "epoch", "val_accuracy"],
        _curves(results / "models"),
    )
    _write(
        folder / "episodic.csv",
        ["network", "protocol", "accuracy", "steps", "seconds", "revision"],
        _episodic_tests(results),
    )
    facts = {"scale": scale, "command": command, **_versions(results), "machine": machine()}
    (folder / "source.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _write(path: Path, head: list[str], rows: Iterator[list[Any]]) -> None:
    """Writes a file, if there is a row for it."""
    if found := list(rows):
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *found])


def _curves(models: Path) -> Iterator[list[Any]]:
    """Validation accuracies of all pretrainings."""
    for file in sorted(models.glob("*/*/*/s*/pretrain.csv")):
        names = file.relative_to(models).parts[:4]
        for line in lines(file):
            yield [*names, line["epoch"], line["val_accuracy"]]


def _episodic_tests(results: Path) -> Iterator[list[Any]]:
    """The tests of compared methods, with facts of what trained or tuned them."""
    for file in sorted((results / "scores").glob("*/*/*/s*/*.csv")):
        network = file.parent.relative_to(results / "scores")
        shots = re.search(r"(\d+)shot", file.stem)
        shot = shots[1] if shots else ""
        trained = sorted((results / "models" / network).glob(f"meta-{shot}shot.meta.json"))[:1]
        path = trained[0] if trained else file.with_suffix(".meta.json")
        meta = json.loads(path.read_text(encoding="utf-8"))
        if trained:
            steps = meta["config"]["training"]["epochs"] * meta["config"]["training"]["steps"]
        elif meta["stage"] == "meta-test":  # each episode tunes a network
            steps = meta["config"]["method"]["steps"]
        else:
            continue
        accuracy = np.mean([float(line["accuracy"]) for line in lines(file)])
        numbers = [f"{100 * accuracy:.4f}", steps, f"{meta['seconds']:.0f}"]
        yield [network.as_posix(), file.stem, *numbers, meta["git_revision"]]


def _versions(results: Path) -> dict[str, Any]:
    """Revisions of the code, and torch's version, by which the scores were made, or the tables."""
    part, metas = next(
        (part, found)
        for part in ("scores", "tables", "models")
        if (
            found := [
                *results.glob(f"{part}/**/*.meta.json"),
                *results.glob(f"imagenet-fs/**/{part}/**/*.meta.json"),
            ]
        )
    )
    facts = [json.loads(file.read_text(encoding="utf-8")) for file in metas]
    revisions = Counter(str(fact["git_revision"]) for fact in facts)
    return {
        f"{part} by revision": dict(sorted(revisions.items())),
        "torch": sorted({fact["packages"]["torch"] for fact in facts}),
    }


def machine() -> str:
    """The processor, as far as Linux tells, and how many cores it has."""
    cpus = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpus.read_text("utf-8") if cpus.exists() else "")
    return f"{model[1] if model else 'unknown processor'}, {os.cpu_count()} cores"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scale")
    parser.add_argument("--as", dest="name", help="its name in docs/results, if it has another")
    parser.add_argument("--command", required=True, help="what made the results")
    asked = parser.parse_args()
    take(asked.scale, asked.name or asked.scale, asked.command)
