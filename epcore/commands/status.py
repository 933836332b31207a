"""How far the running trainings are, from their heartbeat files: here or on a shared disk."""

import contextlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epcore.errors import UserError, visible
from epcore.settings import suggest

# A training that was not heard of for so many seconds has ended without finishing, or hangs.
SILENT = 120
COLUMNS = ("training", "stage", "epoch", "step", "val acc", "best", "images/s", "left", "where")


@dataclass(frozen=True)
class Training:
    """A training that has begun and not finished: where its checkpoint will lie, and its beat."""

    name: str
    beat: dict[str, Any]

    def row(self, now: float) -> tuple[str, ...]:
        beat, silent = self.beat, now - self.beat["updated"]
        job = f", job {beat['slurm_job']}" if beat["slurm_job"] else ""
        remaining = "?" if beat["seconds_left"] is None else duration(beat["seconds_left"])
        return (
            self.name,
            str(beat["stage"]),
            f"{beat['epoch']}/{beat['epochs']}",
            f"{beat['step']}/{beat['steps']}",
            percent(beat["val_accuracy"]),
            percent(beat["best_val_accuracy"]),
            f"{beat['images_per_second']:g}",
            remaining if silent < SILENT else f"silent for {duration(silent)}",
            f"{beat['host']}{job}",
        )


def trainings(results: Path, scale: str = "*") -> list[Training]:
    """The unfinished trainings below a results folder, of one scale or of all.

    Left out are a beat that vanishes meanwhile, one that does not say all that a row needs, and
    one of a training that a later one with other settings has replaced.

    Raises:
        UserError: if there is no such folder.
    """
    if not results.is_dir():
        raise UserError(f"{results} is no folder", "say where the results are: --results FOLDER")
    by_checkpoint: dict[Path, Training] = {}
    for path in sorted(_files(results, scale, "*.state/*.json")):
        checkpoint = path.parent.with_suffix(".pt")
        name, _, *place = checkpoint.relative_to(results).with_suffix("").parts
        try:
            beat = json.loads(path.read_text(encoding="utf-8"))
            training = Training(f"{name} {'/'.join(place)}", beat)
            training.row(0.0)
            replaced = checkpoint.exists() and beat["updated"] < checkpoint.stat().st_mtime
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            continue
        earlier = by_checkpoint.get(checkpoint)
        if not replaced and (earlier is None or earlier.beat["updated"] < beat["updated"]):
            by_checkpoint[checkpoint] = training
    return list(by_checkpoint.values())


def _files(results: Path, scale: str, pattern: str) -> list[Path]:
    """Files of a pattern in the folders of a scale, or of `*`, that have checkpoints.

    A hidden one is half of a file, left by a process that was killed.
    """
    folders = ("models", "imagenet-fs")
    files = [path for name in folders for path in results.glob(f"{scale}/{name}/**/{pattern}")]
    return [path for path in files if not path.name.startswith(".")]


def overview(results: Path, now: float, scale: str = "*") -> str:
    """A line for each unfinished training, and how many checkpoints are finished."""
    rows_of = trainings(results, scale)
    finished = len(_files(results, scale, "*.pt")) - len(_files(results, scale, "*.state/*.pt"))
    silent = sum(now - training.beat["updated"] >= SILENT for training in rows_of)
    summary = f"{len(rows_of) - silent} trainings running, {silent} silent, {finished} finished"
    if not rows_of:
        return summary
    rows = [COLUMNS, *(tuple(map(visible, training.row(now))) for training in rows_of)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = ["  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)) for row in rows]
    if silent:
        summary += "; silent ones go on where they were when Snakemake starts them again"
    return "\n".join([line.rstrip() for line in [*lines, "", summary]])


def percent(value: float | None) -> str:
    """An accuracy in [0, 1]; a dash if there is none yet."""
    return "-" if value is None else f"{100 * value:.2f}"


def duration(seconds: float) -> str:
    """45 s, 12 min, 3 h 20 min or 2 d 4 h."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def run(results: Path, watch: float | None, scale: str | None = None) -> None:
    """The command `status`: prints the overview, with `watch` anew until Ctrl-C.

    Raises:
        UserError: if the scale that is asked for has no results.
    """
    if scale is not None and not (results / scale).is_dir():
        names = [folder.name for folder in results.glob("*") if folder.is_dir()]
        raise UserError(f"{results}: there are no results of scale {scale}{suggest(scale, names)}")
    shown = scale or "*"
    print(overview(results, time.time(), shown), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while watch:
            time.sleep(watch)
            print(f"\033[2J\033[H{overview(results, time.time(), shown)}", flush=True)
