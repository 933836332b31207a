"""The training loop that pretraining and fine-tuning share."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD
from tqdm import tqdm

from epcore.checkpoint import load_safely, save_atomically, state_of
from epcore.errors import UserError
from epcore.files import write_text
from epcore.plan.models import Descent
from epcore.propagation import DegenerateFeaturesError
from epcore.training.schedule import schedule_of

CURVE_COLUMNS = ("epoch", "learning_rate", "train_loss", "val_accuracy", "val_loss")


class Task(Protocol):
    """What a stage trains: `model` holds all weights, the other two do the work of an epoch."""

    @property
    def model(self) -> nn.Module: ...

    def losses(self, epoch: int) -> Iterable[Tensor]:
        """One scalar loss per optimisation step of the epoch, each ready for backward."""

    def validate(self) -> tuple[float, float]:
        """Accuracy in [0, 1] and loss on the validation episodes."""


@dataclass(frozen=True)
class Outcome:
    """weights: of the best epoch; best: its row of the curve; curve: a row per epoch."""

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


def fit(task: Task, settings: Descent, seed: int, steps: int, state: Path, label: str) -> Outcome:
    """Trains until the epochs or the learning rate run out.

    SGD with Nesterov momentum and weight decay on all weights; `epcore.training.schedule` says how
    the learning rate falls. The epoch of the best validation accuracy is kept, the later one of
    equals (official code, A35), or the last one where the settings say so.

    After every epoch everything is saved to `state`; if that file exists, training goes on from
    there and ends with the same weights, because each epoch seeds its own random numbers.

    `steps` is the number of optimisation steps of an epoch, for the progress bar; `state` is
    deleted by the caller once its outputs are written.

    Raises:
        UserError: if the loss or the features are no longer finite, or all features are equal.
    """
    optimiser = SGD(
        task.model.parameters(),
        lr=settings.learning_rate,
        momentum=settings.momentum,
        nesterov=settings.momentum > 0,
        weight_decay=settings.weight_decay,
    )
    schedule = schedule_of(optimiser, settings)
    curve: list[dict[str, float]] = []
    best: dict[str, Any] = {}
    resumed_from = None
    if state.is_file():
        saved = load_safely(state)
        task.model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        schedule.load_state_dict(saved["scheduler"])
        curve, best, resumed_from = saved["curve"], saved["best"], len(saved["curve"])

    for epoch in range(len(curve), settings.epochs):
        if schedule.over:
            break
        rate = optimiser.param_groups[0]["lr"]
        torch.manual_seed(seed_of(seed, label, epoch, "dropout"))
        title = f"{label} {epoch + 1}/{settings.epochs}"
        losses = tqdm(task.losses(epoch), title, steps, leave=False, disable=None, unit="step")
        try:
            train_loss = _train_epoch(losses, task.model, optimiser, title)
            accuracy, loss = task.validate()
        except DegenerateFeaturesError as error:
            raise UserError(
                f"training diverged in {title}: {error}; lower the recipe's learning_rate"
            ) from None
        row = dict(zip(CURVE_COLUMNS, (epoch, rate, train_loss, accuracy, loss), strict=True))
        curve.append(row)
        schedule.step(accuracy, loss)
        if not best or schedule.keeps_last or accuracy >= best["row"]["val_accuracy"]:
            best = {"row": row, "weights": state_of(task.model)}
        save_atomically(
            state,
            {
                "model": state_of(task.model),
                "optimiser": optimiser.state_dict(),
                "scheduler": schedule.state_dict(),
                "curve": curve,
                "best": best,
            },
        )
    return Outcome(best["weights"], best["row"], curve, resumed_from)


def _train_epoch(losses: Iterable[Tensor], model: nn.Module, optimiser: SGD, title: str) -> float:
    """Mean loss over the epoch's steps."""
    model.train()
    total, steps, last = 0.0, 0, math.nan
    for loss in losses:
        value = loss.item()
        if not math.isfinite(value):
            raise UserError(
                f"training diverged in {title}, step {steps + 1}: the loss is {value} (it was "
                f"{last:.4g} one step before); lower the recipe's learning_rate"
            )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        total, steps, last = total + value, steps + 1, value
    return total / steps
