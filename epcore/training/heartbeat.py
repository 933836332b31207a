"""A small file beside a training's state that says how far it is; `epcore status` reads it."""

import contextlib
import math
import os
import socket
import time
from pathlib import Path

from pydantic import FiniteFloat

from epcore.files import write_text
from epcore.settings import Settings

EVERY = 10.0  # seconds


class Beat(Settings):
    """How far a training is: steps of an epoch after so many epochs; accuracies are in [0, 1].

    updated: in seconds since 1970. slurm_job: the job's number where SLURM runs it.
    """

    stage: str
    epoch: int
    epochs: int
    step: int
    steps: int
    val_accuracy: FiniteFloat | None
    best_val_accuracy: FiniteFloat | None
    images_per_second: FiniteFloat
    seconds_left: FiniteFloat | None
    updated: FiniteFloat
    host: str
    slurm_job: str | None


class Heartbeat:
    """Writes `path` at most every ten seconds, so that trainings of short steps are not slowed.

    Args:
        label: what is trained, as the stage is called.
        images: images of one optimization step.
        total: steps of the whole training; it may stop earlier.
        done: steps that were done when this process began.
    """

    def __init__(self, path: Path, label: str, images: int, total: int, done: int) -> None:
        self.path, self.label, self.images = path, label, images
        self.total, self.first, self.started = total, done, time.monotonic()
        self.written = -math.inf

    def stop(self) -> None:
        """Marks the training as not running, until another process goes on with it."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def beat(self, step: int, steps: int, curve: list[dict[str, float]]) -> None:
        """Says that `step` of the `steps` of an epoch are done, after the epochs of `curve`.

        Time left is that of the remaining steps at the mean speed of this process so far,
        validation included.
        """
        now = time.monotonic()  # clocks of machines are set
        if now - self.written < EVERY:
            return
        done = len(curve) * steps + step
        speed = (done - self.first) / max(now - self.started, 1e-9)
        accuracies = [row["val_accuracy"] for row in curve]
        beat = Beat(
            stage=self.label,
            epoch=len(curve),
            epochs=self.total // steps,
            step=step,
            steps=steps,
            val_accuracy=accuracies[-1] if accuracies else None,
            best_val_accuracy=max(accuracies, default=None),
            images_per_second=round(speed * self.images, 1),
            seconds_left=round((self.total - done) / speed) if speed else None,
            updated=round(time.time(), 1),
            host=socket.gethostname(),
            slurm_job=os.environ.get("SLURM_JOB_ID"),
        )
        self.written = now
        # No training ends because nobody could be told how far it is.
        with contextlib.suppress(OSError):
            write_text(self.path, beat.model_dump_json(indent=1) + "\n")
