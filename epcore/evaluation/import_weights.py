"""Weights of anyone's network become a checkpoint, or it is said what does not fit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from epcore.checkpoint import Checkpoint, build, problem_of, state_of
from epcore.errors import UserError
from epcore.files import require
from epcore.plan import Plan

# Under which keys others keep the weights of a network; and what PyTorch's wrappers put in front.
HOLDERS = ("state_dict", "model_state_dict", "model", "params", "network", "weights")
WRAPPER = "module."
SHOWN = 3  # names in a message


def weights_in(path: Path) -> dict[str, Tensor]:
    """The tensors of a torch file by name, also of one that keeps them under a usual key.

    Raises:
        UserError: if the file is missing, or holds anything but tensors and plain values.
    """
    require(path, "file of weights", "correct the name")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch, pickle and zipfile each raise their own
        raise UserError(
            f"{path} cannot be read as tensors and plain values ({type(error).__name__}); save "
            "the network's state_dict() alone with torch.save"
        ) from None
    found = next((content[key] for key in HOLDERS if _holds(content, key)), content)
    if problem := problem_of(found):
        raise UserError(f"{path}: its weights {problem}")
    return {name.removeprefix(WRAPPER): tensor for name, tensor in found.items()}


def _holds(content: Any, key: str) -> bool:
    return isinstance(content, dict) and isinstance(content.get(key), dict)


def renamed(weights: Mapping[str, Tensor], changes: Sequence[str]) -> dict[str, Tensor]:
    """Each change `OLD=NEW` replaces the beginning OLD of names, the first that fits a name.

    Raises:
        UserError: for a change without `=`, one that fits no name, or two names that become one.
    """
    pairs = []
    for change in changes:
        old, mark, new = change.partition("=")
        if not mark or not old:
            raise UserError(f"--map {change}: expected OLD=NEW, beginnings of names")
        if not any(name.startswith(old) for name in weights):
            raise UserError(f"--map {change}: no name begins with {old!r}; {_names(weights)}")
        pairs.append((old, new))
    found: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        old, new = next((pair for pair in pairs if name.startswith(pair[0])), ("", ""))
        changed = new + name.removeprefix(old)
        if changed in found:
            raise UserError(f"--map makes two weights {changed!r}; one of them was {name!r}")
        found[changed] = tensor
    return found


def fitted(
    weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor], what: str
) -> tuple[dict[str, Tensor], list[str]]:
    """Weights of all the names that a network has, and the names that it has not.

    BatchNorm's count of batches, which nothing reads, may lack.

    Raises:
        UserError: naming the weights that are missing or have another shape.
    """
    needed = [name for name in wanted if not name.endswith("num_batches_tracked")]
    left = [name for name in weights if name not in wanted]
    if missing := [name for name in needed if name not in weights]:
        remedy = (
            f"it has {_shown(left)} that the network lacks: rename them with --map OLD=NEW"
            if left
            else "it has no other weights to rename: give a complete file, or another --backbone"
        )
        raise UserError(f"{what} needs {_shown(missing)}, which the file lacks; {remedy}")
    for name in needed:
        theirs, ours = tuple(weights[name].shape), tuple(wanted[name].shape)
        if theirs != ours:
            raise UserError(
                f"{name} has shape {theirs}, {what} needs {ours}; choose another --backbone, or "
                "a scale at which it is as wide"
            )
    given = {name: weights.get(name, wanted[name]).to(wanted[name].dtype) for name in wanted}
    return given, left


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(names[:SHOWN]) or "nothing") + more


def _names(weights: Mapping[str, Tensor]) -> str:
    return f"the names are {_shown(list(weights))}"


def run(
    weights: Path, backbone: str, changes: list[str], out: Path, settings: Path, scale: str
) -> None:
    """The command `import-weights`: a checkpoint of a backbone as wide as the scale has it."""
    built = Plan(settings, scale).registry.backbone(backbone)
    network = build(built)
    theirs = renamed(weights_in(weights), changes)
    given, left = fitted(theirs, state_of(network), f"{backbone} at scale {scale} ({built})")
    Checkpoint(built, given).save(out)
    print(f"{out}: {len(given)} weights of {built}")
    if left:
        print(f"left out, because the network has none of these names: {', '.join(left)}")
