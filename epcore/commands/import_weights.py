"""The command `import-weights`: makes a checkpoint of weights that were trained elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from epcore.backbones.checkpoint import Checkpoint, build, problem_of, state_of
from epcore.config.scale import MainConfig
from epcore.errors import UserError
from epcore.files import check_exists
from epcore.plan import Plan

# What PyTorch puts in front of the names of a parallel and of a compiled network.
WRAPPERS = ("module.", "_orig_mod.")
SHOWN = 3  # names in a message
ALONE = "save the network's state_dict() alone with torch.save"


def weights_in(path: Path, key: str | None) -> dict[str, Tensor]:
    """The tensors of a torch or safetensors file by name, without the names of wrappers.

    They may be anywhere in the file's mappings; `key`, keys joined by dots, says where if there is
    more than one place.

    Raises:
        UserError: if the file is missing, or holds anything but tensors and plain values, no
            weights, or several and no key says which.
    """
    check_exists(path, "file of weights", "correct the name")
    try:
        if path.suffix == ".safetensors":
            content = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch, pickle, zipfile and safetensors each raise their own
        raise UserError(
            f"{path} cannot be read as tensors and plain values ({type(error).__name__})", ALONE
        ) from None
    places = dict(_weights_below(content))
    if not places:
        raise UserError(f"{path} has no mapping of names to tensors", ALONE)
    places_listed = ", ".join(
        f"{name} ({len(weights)})" for name, weights in places.items() if name
    )
    if key is not None and key not in places:
        raise UserError(
            f"--key {key}: {path} has no weights there, but in {places_listed or 'itself'}"
        )
    if key is None and len(places) > 1:
        raise UserError(
            f"{path} holds several mappings of names to tensors: {places_listed}",
            "say which with --key",
        )
    weights = places[key] if key is not None else next(iter(places.values()))
    if problem := problem_of(weights):
        raise UserError(f"{path}: its weights {problem}")
    return {_unwrapped(name): tensor for name, tensor in weights.items()}


def _weights_below(content: Any, place: str = "") -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Every mapping of names to tensors alone, with the keys that lead to it, joined by dots.

    An optimizer's state is no such place: its keys are numbers.
    """
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        return
    if content and all(isinstance(value, Tensor) for value in content.values()):
        yield place, content
    for name, value in content.items():
        yield from _weights_below(value, f"{place}.{name}" if place else name)


def _unwrapped(name: str) -> str:
    """A weight's name without what wrappers put in front, each any number of times."""
    while name.startswith(WRAPPERS):
        name = name.partition(".")[2]
    return name


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
            names = f"the names are {_abbreviated([*weights])}"
            raise UserError(f"--map {change}: no name begins with {old!r}", names)
        pairs.append((old, new))
    tensors: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        old, new = next((pair for pair in pairs if name.startswith(pair[0])), ("", ""))
        changed = new + name.removeprefix(old)
        if changed in tensors:
            raise UserError(f"--map makes two weights {changed!r}", f"one of them was {name!r}")
        tensors[changed] = tensor
    return tensors


def fitted(
    weights: Mapping[str, Tensor], expected: Mapping[str, Tensor], what: str
) -> tuple[dict[str, Tensor], list[str]]:
    """Weights of all the names that a network has, and the names that it has not.

    BatchNorm's count of batches, which nothing reads, may lack.

    Raises:
        UserError: naming the weights that are missing or have another shape.
    """
    needed = [name for name in expected if not name.endswith("num_batches_tracked")]
    unused = [name for name in weights if name not in expected]
    if missing := [name for name in needed if name not in weights]:
        remedy = (
            f"it has {_abbreviated(unused)} that the network lacks: rename them with --map OLD=NEW"
            if unused
            else "it has no other weights to rename: give a complete file, or another --backbone"
        )
        raise UserError(f"{what} needs {_abbreviated(missing)}, which the file lacks", remedy)
    for name in needed:
        given_shape, expected_shape = tuple(weights[name].shape), tuple(expected[name].shape)
        if given_shape != expected_shape:
            raise UserError(
                f"{name} has shape {given_shape}, {what} needs {expected_shape}",
                "choose another --backbone, or a scale at which it is as wide",
            )
    fitting = {
        name: weights.get(name, expected[name]).to(expected[name].dtype) for name in expected
    }
    return fitting, unused


def _abbreviated(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(names[:SHOWN]) or "nothing") + more


def run(
    weights: Path,
    backbone: str,
    key: str | None,
    changes: list[str],
    out: Path,
    settings: Path,
    main: MainConfig,
) -> None:
    """The command `import-weights`: a checkpoint of a backbone as wide as the scale has it."""
    architecture = Plan(settings, main.scale).registry.backbone(backbone)
    network = build(architecture)
    imported = renamed(weights_in(weights, key), changes)
    fitting, unused = fitted(
        imported, state_of(network), f"{backbone} at scale {main.scale} ({architecture})"
    )
    Checkpoint(architecture, fitting).save(out)
    print(f"{out}: {len(fitting)} weights of {architecture}")
    if unused:
        print(f"left out, because the network has none of these names: {', '.join(unused)}")
