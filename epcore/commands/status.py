"""How far the running trainings are, from their heartbeat files: here or on a shared disk."""

import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from rich.table import Table

from epcore.commands.terminal import print_table
from epcore.errors import UserError, visible
from epcore.settings import suggest
from epcore.training.heartbeat import Beat

# A training that was not heard of for so many seconds has ended without finishing, or hangs.
SILENT = 120
COLUMNS = ("training", "stage", "epoch", "step", "val acc", "best", "images/s", "left", "where")


def beats(results: Path, scale: str = "*") -> Iterator[tuple[str, Beat]]:
    """The unfinished trainings of a scale or of all: where the checkpoint will lie, and the beat.

    Left out are files that are no beat, or half of one, and beats from before a checkpoint was
    finished.

    Raises:
        UserError: if there is no such folder.
    """
    if not results.is_dir():
        raise UserError(f"{results} is no folder", "say where the results are: --results FOLDER")
    for path in _files(results, scale, "*.state/*.json"):
        checkpoint = path.parent.with_suffix(".pt")
        name, _, *place = checkpoint.relative_to(results).with_suffix("").parts
        with contextlib.suppress(OSError, ValueError):
            beat = Beat.model_validate_json(path.read_bytes())
            if not (checkpoint.exists() and beat.updated < checkpoint.stat().st_mtime):
                yield f"{name} {'/'.join(place)}", beat


def _files(results: Path, scale: str, pattern: str) -> list[Path]:
    """Files of a pattern in the folders of a scale, or of `*`, that have checkpoints.

    A hidden one is half of a file, left by a process that was killed.
    """
    folders = ("models", "imagenet-fs")
    files = [path for name in folders for path in results.glob(f"{scale}/{name}/**/{pattern}")]
    return sorted(path for path in files if not path.name.startswith("."))


def overview(results: Path, now: float, scale: str = "*") -> tuple[Table, str]:
    """A line for each unfinished training, and how many are running, silent and finished."""
    table, silent = Table(*COLUMNS, box=None, pad_edge=False), 0
    for name, beat in beats(results, scale):
        silence = now - beat.updated
        silent += silence >= SILENT
        cells = (
            name,
            beat.stage,
            f"{beat.epoch}/{beat.epochs}",
            f"{beat.step}/{beat.steps}",
            percent(beat.val_accuracy),
            percent(beat.best_val_accuracy),
            f"{beat.images_per_second:g}",
            f"silent for {duration(silence)}" if silence >= SILENT else duration(beat.seconds_left),
            f"{beat.host}, job {beat.slurm_job}" if beat.slurm_job else beat.host,
        )
        table.add_row(*map(visible, cells))
    finished = len(_files(results, scale, "*.pt")) - len(_files(results, scale, "*.state/*.pt"))
    running = table.row_count - silent
    summary = f"{running} trainings running, {silent} silent, {finished} finished"
    if silent:
        summary += "; silent ones go on where they were when Snakemake starts them again"
    return table, summary


def percent(value: float | None) -> str:
    """An accuracy in [0, 1]; a dash if there is none yet."""
    return "-" if value is None else f"{100 * value:.2f}"


def duration(seconds: float | None) -> str:
    """As 3:20:05, or 2 days, 4:00:00; a question mark if nobody knows."""
    return "?" if seconds is None else str(timedelta(seconds=round(seconds)))


def run(results: Path, scale: str | None = None) -> None:
    """The command `status`: prints the overview.

    Raises:
        UserError: if the scale that is asked for has no results.
    """
    if scale is not None and not (results / scale).is_dir():
        names = [folder.name for folder in results.glob("*") if folder.is_dir()]
        raise UserError(f"{results}: there are no results of scale {scale}{suggest(scale, names)}")
    table, summary = overview(results, time.time(), scale or "*")
    if table.row_count:
        print_table(table)
    print(summary)
