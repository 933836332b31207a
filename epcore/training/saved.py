"""Whether a saved state is one of a training: torch takes most of a foreign one without a word."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

CURVE_COLUMNS = ("epoch", "learning_rate", "train_loss", "val_accuracy", "val_loss")
# What a training's settings say of its schedule, among what changes from epoch to epoch.
SETTINGS = ("mode", "factor", "patience", "T_max", "base_lrs")


def check(
    saved: Mapping[str, Any], fresh: Mapping[str, Any], model: nn.Module, epochs: int, steps: int
) -> None:
    """Compares a state with that of the same training before its first step.

    Args:
        saved: what a file holds.
        fresh: what the training would save.
        model: what it trains.
        epochs: how many there are.
        steps: of an epoch.

    Raises:
        ValueError: for the first part that is of another training. What is missing or of another
            type may raise a KeyError, TypeError or AttributeError as well.
    """
    _check_alike(saved["model"], fresh["model"], "model")
    _check_alike(saved["random"][:2], fresh["random"][:2], "random")
    _check_scheduler(saved["scheduler"], fresh["scheduler"])
    _check_optimizer(saved["optimizer"], fresh["optimizer"], list(model.parameters()))
    _check_progress(saved, epochs, steps)
    if saved["curve"]:
        _check_alike(saved["best"]["weights"], fresh["model"], "best weights")


def _check_alike(saved: Any, fresh: Any, location: str) -> None:
    """Raises `ValueError` unless both states have equal keys, shapes and types at any depth."""
    if isinstance(fresh, Tensor):
        fits = isinstance(saved, Tensor) and (saved.shape, saved.dtype) == (
            fresh.shape,
            fresh.dtype,
        )
        if not fits or not bool(saved.isfinite().all()):
            raise ValueError(f"{location} has another shape or type, or is not finite")
    elif isinstance(fresh, Mapping):
        if not isinstance(saved, dict) or saved.keys() != fresh.keys():
            raise ValueError(f"{location} has other parts")
        for key in fresh:
            _check_alike(saved[key], fresh[key], f"{location}, {key}")
    elif isinstance(fresh, (list, tuple)):
        if not isinstance(saved, (list, tuple)) or len(saved) != len(fresh):
            raise ValueError(f"{location} has another length")
        for saved_part, fresh_part in zip(saved, fresh, strict=True):
            _check_alike(saved_part, fresh_part, location)
    elif isinstance(fresh, (int, float)) and not isinstance(saved, (int, float)):
        raise ValueError(f"{location} is no number")


def _check_scheduler(saved: Mapping[str, Any], fresh: Mapping[str, Any]) -> None:
    for key in SETTINGS:
        if saved.get(key) != fresh.get(key):
            raise ValueError(f"its {key} is another")
    for key in saved.keys() & fresh.keys():  # another torch may have more or fewer
        _check_alike(saved[key], fresh[key], f"scheduler, {key}")


def _check_optimizer(
    saved: Mapping[str, Any], fresh: Mapping[str, Any], parameters: Sequence[Tensor]
) -> None:
    for saved_group, fresh_group in zip(saved["param_groups"], fresh["param_groups"], strict=True):
        if (
            not 0 <= saved_group["lr"] <= fresh_group["lr"]
            or saved_group["params"] != fresh_group["params"]
        ):
            raise ValueError("its learning rate or its numbers of weights are others")
        for key in (saved_group.keys() & fresh_group.keys()) - {"lr"}:
            if saved_group[key] != fresh_group[key]:
                raise ValueError(f"its {key} is another")
    for number, state in saved["state"].items():
        for name, value in state.items():  # SGD's momentum; Adam's two means and their count
            if value is not None and name != "step":
                _check_alike(value, parameters[number].detach().cpu(), "momentum")


def _check_progress(saved: Mapping[str, Any], epochs: int, steps: int) -> None:
    step, total, _ = saved["progress"]
    rows, best = saved["curve"], saved["best"]
    if type(step) is not int or not 0 <= step <= steps or not math.isfinite(total):
        raise ValueError(f"it is after {step} of {steps} steps")
    if type(rows) is not list or len(rows) > epochs:
        raise ValueError(f"it has more than {epochs} epochs")
    for number, row in enumerate(rows):
        _check_alike(row, dict.fromkeys(CURVE_COLUMNS, 0.0), "curve")
        if row["epoch"] != number:
            raise ValueError("its curve lacks an epoch")
    if bool(best) != bool(rows) or (rows and best["row"] not in rows):
        raise ValueError("its best epoch is not on its curve")
