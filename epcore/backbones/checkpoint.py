"""Checkpoints: a trained backbone with its class head, and what it is."""

import pickle
import reprlib
import textwrap
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import nn

from epcore.backbones.base import Backbone
from epcore.backbones.build import build_backbone
from epcore.backbones.config import BackboneConfig
from epcore.errors import UserError
from epcore.files import atomic
from epcore.runtime.device import place

FORMAT = "epcore checkpoint 1"
PARTS = ("weights", "class_head")
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
REMEDY = (
    "if the workflow made it, delete it and run the same command again to train it anew; for "
    "weights from elsewhere see docs/own-weights.md"
)


@dataclass(frozen=True)
class Checkpoint:
    """Weights of the epoch of a training that is kept, by default the best on validation.

    backbone: which network this is. weights: state of the backbone. class_head: state of the
    linear layer over the base classes. name: how messages call it, not saved.
    """

    backbone: BackboneConfig
    weights: dict[str, torch.Tensor]
    class_head: dict[str, torch.Tensor] = field(default_factory=dict)
    name: str = "the checkpoint"

    @classmethod
    def of(cls, backbone: BackboneConfig, weights: Mapping[str, torch.Tensor]) -> "Checkpoint":
        """Out of the weights of a model that has a `backbone` and a `class_head`."""

        def part(prefix: str) -> dict[str, torch.Tensor]:
            names = [name for name in weights if name.startswith(prefix)]
            return {name.removeprefix(prefix): weights[name] for name in names}

        return cls(backbone, part("backbone."), part("class_head."))

    @property
    def cosine_head(self) -> bool:
        """Whether the class head is a cosine layer, which has a scale and no biases."""
        return "scale" in self.class_head

    def save(self, path: Path) -> None:
        """Raises `UserError` if a weight is not finite."""
        for part in PARTS:
            if problem := problem_of(getattr(self, part)):
                raise UserError(f"{path} is not written: its {part} {problem}")
        save_atomically(
            path,
            {
                "format": FORMAT,
                "backbone": self.backbone.model_dump(mode="json"),
                "weights": self.weights,
                "class_head": self.class_head,
            },
        )

    @classmethod
    def load(cls, path: Path, expected: BackboneConfig) -> "Checkpoint":
        """Reads a checkpoint, refusing one of another backbone.

        Raises:
            UserError: if the file is missing, damaged, no checkpoint, or of another backbone.
        """
        content = load_safely(path)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise UserError(f"{path} is not a checkpoint of this program", REMEDY)
        try:
            backbone = BackboneConfig.model_validate(content.get("backbone"))
        except ValidationError:
            raise UserError(
                f"checkpoint {path} holds no backbone that this program has "
                f"({reprlib.repr(content.get('backbone'))})",
                REMEDY,
            ) from None
        if backbone != expected:
            remedy = f"give the --scale that it is of or, {REMEDY}"
            if backbone.architecture != expected.architecture:
                remedy = f"give --backbone of {backbone.architecture}, or another checkpoint"
            raise UserError(
                f"checkpoint {path} holds {backbone}, but {expected} is asked for", remedy
            )
        complete: dict[str, Any] = {"class_head": {}} | content
        for part in PARTS:
            if problem := problem_of(complete.get(part)):
                raise UserError(f"checkpoint {path}: its {part} {problem}", REMEDY)
        return cls(backbone, complete["weights"], complete["class_head"], f"checkpoint {path}")

    def fill(self, backbone: nn.Module, class_head: nn.Module | None = None) -> None:
        """Puts the weights into a backbone and, if there is one, the linear layer behind it.

        Raises:
            UserError: if the names or shapes of the weights are others.
        """
        for module, part in ((backbone, "weights"), (class_head, "class_head")):
            if module is None:
                continue
            try:
                module.load_state_dict(getattr(self, part))
            except RuntimeError as error:
                problems = [textwrap.shorten(line, 160) for line in str(error).splitlines()[1:]]
                more = f" and {len(problems) - 2} more" if len(problems) > 2 else ""
                raise UserError(
                    f"{self.name}: its {part} do not fit {self.backbone} "
                    f"({' '.join(problems[:2])}{more})",
                    REMEDY,
                ) from None

    def network(self, device: torch.device) -> Backbone:
        """The backbone with these weights on the device, in eval mode.

        Raises:
            UserError: if the names or shapes of the weights are others.
        """
        network = build(self.backbone)
        self.fill(network)
        place(network, device)
        network.eval()
        return network


def problem_of(state: Any) -> str | None:
    """What is wrong with the weights of a state, which must be finite numbers; None if nothing is.

    The only integer is BatchNorm's number of batches.
    """
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor) for name, tensor in state.items()
    ):
        return f"are no tensors by name, but {reprlib.repr(state)}"
    for name, tensor in state.items():
        counts = tensor.ndim == 0 and tensor.dtype == torch.int64
        if not (tensor.dtype in FLOATS or (counts and name.endswith("num_batches_tracked"))):
            return f"are no floating-point numbers in {name}, but {tensor.dtype}"
        # A few bytes may claim to be any number of weights.
        is_dense = tensor.layout == torch.strided and not tensor.is_meta
        if not is_dense or tensor.untyped_storage().nbytes() < tensor.nbytes:
            return f"are not stored number by number in {name}"
        if not tensor.isfinite().all():
            return f"are not finite in {name}"
    return None


def save_atomically(path: Path, content: dict[str, Any]) -> None:
    """Writes a torch file whole or not at all."""
    # Through an open file: given a name, torch writes the name, a temporary one, into the archive.
    with atomic(path) as temporary, temporary.open("wb") as file:
        try:
            torch.save(content, file)
        except RuntimeError as error:
            # What the file said, a full disk for one, is hidden behind torch's own complaint.
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise


def load_safely(path: Path) -> Any:
    """The content of a torch file that holds tensors and plain values only.

    Raises:
        UserError: if it cannot be read, or a checksum in it does not hold.
    """
    try:
        # torch reads on over flipped bits; the archive knows better.
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise ValueError(f"wrong checksum of {damaged}")
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"checkpoint {path} does not exist", "train it first") from None
    except Exception as error:  # torch, pickle and zipfile each raise their own
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        if isinstance(error, pickle.UnpicklingError):
            problem = "it holds more than tensors and plain values"
        raise UserError(f"checkpoint {path} is damaged or foreign ({problem})", REMEDY) from None


def load_backbone(path: Path, expected: BackboneConfig, device: torch.device) -> Backbone:
    """The trained backbone on the device, in eval mode."""
    return Checkpoint.load(path, expected).network(device)


def build(settings: BackboneConfig) -> Backbone:
    """The untrained backbone of the settings."""
    try:
        return build_backbone(settings.architecture, settings.width, settings.depth)
    except ValueError as error:
        problem = f"backbone {settings.architecture}: {error}"
        raise UserError(f"{problem}", "choose another width or depth") from None


def state_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of a module's weights on the CPU, in the usual memory order."""
    return {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in module.state_dict().items()
    }
