"""The training loop that pretraining and fine-tuning share."""

import math
import sys
import textwrap
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from epcore.backbones.checkpoint import load_safely, save_atomically, state_of
from epcore.errors import UserError
from epcore.files import write_text
from epcore.propagation import DegenerateFeaturesError
from epcore.runtime.interruption import Interrupted, Request, postponed
from epcore.training.heartbeat import Heartbeat
from epcore.training.process_group import ALONE, ProcessGroup
from epcore.training.schedule import OptimizerSettings, clip_gradients, optimizer_of, schedule_of

SAVE_EVERY = 600.0  # seconds
STATE = "epcore training state 3"
CURVE_COLUMNS = ("epoch", "learning_rate", "train_loss", "val_accuracy", "val_loss")


class Task(Protocol):
    """What a stage trains: `model` holds all weights, the others do the work of an epoch."""

    @property
    def model(self) -> nn.Module: ...

    @property
    def steps(self) -> int:
        """Optimization steps of an epoch."""

    @property
    def images_per_step(self) -> int:
        """Images that the network sees in one step."""

    def seed(self, epoch: int) -> int:
        """The seed of an epoch's order and of the random numbers of its augmentation."""

    def losses(self, epoch: int, start: int, generator: torch.Generator) -> Iterable[Tensor]:
        """One scalar loss, ready for backward, for each step of the epoch from `start` on.

        Augmentation draws from `generator`, for a step when its loss is asked for.
        """

    def validate(self) -> tuple[float, float]:
        """Accuracy in [0, 1] and loss on the validation episodes."""


@dataclass(frozen=True)
class Outcome:
    """weights: of the epoch that is kept; best: its row of the curve; curve: a row per epoch."""

    weights: dict[str, Tensor]
    best: dict[str, float]
    curve: list[dict[str, float]]
    resumed_from: int | None

    def write_curve(self, path: Path) -> None:
        lines = [",".join(CURVE_COLUMNS)]
        lines += [",".join(f"{row[name]:.6g}" for name in CURVE_COLUMNS) for row in self.curve]
        write_text(path, "\n".join(lines) + "\n")


def seed_of(*parts: int | str) -> int:
    """A 63-bit seed from a few numbers and words, the same on every machine."""
    words = [part if isinstance(part, int) else int.from_bytes(part.encode()) for part in parts]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))


def fit(
    task: Task,
    settings: OptimizerSettings,
    seed: int,
    state: Path,
    label: str,
    team: ProcessGroup = ALONE,
) -> Outcome:
    """Trains until the epochs or the learning rate run out.

    `epcore.training.schedule` has the optimizers and says how the learning rate falls. The epoch of
    the best validation accuracy is kept, the later one of equals (official code, A35), or the last
    one where the settings say so.

    After every epoch, every ten minutes and when a signal asks the process to leave, everything
    is saved to `state`. If that file exists, training goes on from there and ends with the same
    weights. It outlives the training; `epcore.runtime.resume` says why and until when. Of a team's
    processes, which all hold the same, the first one saves.

    Raises:
        UserError: if the loss or the features are no longer finite, or all features are equal.
        Interrupted: after a signal, once everything is saved.
    """
    with postponed() as request:
        training = _Training(task, settings, seed, state, label, request, team)
        try:
            while training.goes_on():
                training.epoch()
        finally:
            training.heartbeat.stop()
    best, curve = training.best, training.curve
    return Outcome(best["weights"], best["row"], curve, training.resumed_from)


class _Training:
    """What `fit` has reached: whole epochs in `curve`, and `step` steps of the next one."""

    def __init__(
        self,
        task: Task,
        settings: OptimizerSettings,
        seed: int,
        state: Path,
        label: str,
        request: Request,
        team: ProcessGroup,
    ) -> None:
        self.task, self.settings, self.seed = task, settings, seed
        self.state, self.label, self.request, self.team = state, label, request, team
        self.optimizer = optimizer_of(task.model, settings)
        self.schedule = schedule_of(self.optimizer, settings)
        self.generator = torch.Generator()
        self.curve: list[dict[str, float]] = []
        self.best: dict[str, Any] = {}
        self.step, self.total, self.last = 0, 0.0, math.nan
        self.previous_loss: Tensor | None = None  # not counted yet
        self.resumed_from: int | None = None
        if state.is_file():
            self._resume()
        self.saved_at = time.monotonic()
        self.heartbeat = Heartbeat(
            state.with_suffix(".json"),
            label,
            task.images_per_step,
            settings.epochs * task.steps,
            len(self.curve) * task.steps + self.step,
        )

    def goes_on(self) -> bool:
        return len(self.curve) < self.settings.epochs and not self.schedule.over

    def epoch(self) -> None:
        """Trains to the end of the epoch, validates, lowers the rate if it is time, and saves."""
        number, rate = len(self.curve), self._rate()
        title = f"{self.label} {number + 1}/{self.settings.epochs}"
        try:
            train_loss = self._train(number, title)
            accuracy, loss = self._validate()
        except DegenerateFeaturesError as error:
            self._count()
            remedy = "look whether the images are all alike (epcore contact-sheet); if not, lower"
            step = min(self.step + 1, self.task.steps)  # the last one, if it was in the validation
            raise self._diverged(step, str(error), remedy) from None
        row = dict(zip(CURVE_COLUMNS, (number, rate, train_loss, accuracy, loss), strict=True))
        self.curve.append(row)
        self.schedule.step(accuracy, loss)
        gained = not self.best or accuracy >= self.best["row"]["val_accuracy"]
        if gained or self.schedule.keeps_last:
            self.best = {"row": row, "weights": state_of(self.task.model)}
        self.step, self.total = 0, 0.0
        self._save()
        if signal := self.team.agree(self.request.number):
            raise Interrupted(signal)

    def _rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def _train(self, epoch: int, title: str) -> float:
        """Mean loss over the epoch's steps."""
        if self.step == 0:
            self.generator.manual_seed(self.task.seed(epoch))
            torch.manual_seed(seed_of(self.seed, self.label, epoch, "dropout"))
        self.task.model.train()
        steps = tqdm(
            self.task.losses(epoch, self.step, self.generator), title, self.task.steps,
            initial=self.step, leave=False, disable=self.team.rank > 0 or None, unit="step",
        )  # fmt: skip
        for loss in steps:
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            clip_gradients(self.task.model, self.settings)
            self.optimizer.step()
            self._count()
            self.previous_loss = loss.detach()
            self.step += 1
            if self.team.rank == 0:
                self.heartbeat.beat(self.step, self.task.steps, self.curve)
            signal = self.team.agree(self.request.number)
            if signal or time.monotonic() - self.saved_at > SAVE_EVERY:
                self._count()
                self._check_weights()
                self._save()
            if signal:
                raise Interrupted(signal)
        self._count()
        self._check_weights()
        return self.total / self.step

    def _count(self) -> None:
        """Adds the loss of the previous step, so that `.item()` does not stall the GPU."""
        if self.previous_loss is None:
            return
        value, self.previous_loss = self.previous_loss.item(), None
        if not math.isfinite(value):
            raise self._diverged(self.step, f"the loss is {value}")
        self.total, self.last = self.total + value, value

    def _validate(self) -> tuple[float, float]:
        """Accuracy and loss; a signal does not wait for them, which may take minutes.

        Validating changes nothing that is saved, so training goes on with a validation.
        """
        try:
            with self.request.interruptible():
                return self.task.validate()
        except Interrupted:
            self._save()
            raise

    def _diverged(self, step: int, what: str, remedy: str = "lower") -> UserError:
        epoch = f"{self.label} {len(self.curve) + 1}/{self.settings.epochs}"
        return UserError(
            f"training diverged in {epoch}, step {step}: {what} (the last loss was "
            f"{self.last:.4g})",
            f"{remedy} the recipe's learning_rate",
        )

    def _check_weights(self) -> None:
        """Raises `UserError` if weights are not finite, before they replace the last good state."""
        if not all(bool(part.isfinite().all()) for part in self.task.model.state_dict().values()):
            raise self._diverged(self.step, "weights are no longer finite")

    def _save(self) -> None:
        if self.team.rank == 0:
            save_atomically(self.state, self._content())
        self.saved_at = time.monotonic()

    def _content(self) -> dict[str, Any]:
        return {
            "format": STATE,
            "model": state_of(self.task.model),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.schedule.state_dict(),
            "curve": self.curve,
            "best": self.best,
            "progress": (self.step, self.total, self.last),
            "random": (self.generator.get_state(), torch.get_rng_state(), _cuda_random()),
        }

    def _resume(self) -> None:
        saved = load_safely(self.state)
        if not isinstance(saved, dict) or saved.get("format") != STATE:
            raise UserError(
                f"{self.state} is of another version of this program",
                "delete it and run the same command again to train from the start",
            )
        try:
            self._restore(saved)
        except Exception as error:  # torch raises nearly anything
            reason = textwrap.shorten(str(error), 100)
            raise UserError(
                f"{self.state} is not the state of this training ({reason})",
                "delete it and run the same command again to train from the start",
            ) from None
        self.resumed_from = len(self.curve)
        if self.team.rank == 0:
            place = f"after epoch {len(self.curve)}/{self.settings.epochs} and {self.step} steps"
            print(f"epcore: {self.label} goes on {place}", file=sys.stderr)

    def _restore(self, saved: dict[str, Any]) -> None:
        """What `_content` has put together."""
        self.task.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.schedule.load_state_dict(saved["scheduler"])
        self.curve, self.best = saved["curve"], saved["best"]
        self.step, self.total, self.last = saved["progress"]
        augmentation, dropout, cuda = saved["random"]
        self.generator.set_state(augmentation)
        torch.set_rng_state(dropout)
        if cuda is not None and torch.cuda.is_available():
            torch.cuda.set_rng_state(cuda)


def _cuda_random() -> Tensor | None:
    return torch.cuda.get_rng_state() if torch.cuda.is_available() else None
