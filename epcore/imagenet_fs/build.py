"""From settings to generators, and from trained generators to files and back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from epcore.backbones.checkpoint import REMEDY, load_safely, problem_of, save_atomically
from epcore.errors import UserError
from epcore.generators.base import ClassMeansGenerator, WeightGenerator
from epcore.generators.config import (
    ClassMeans,
    Generator,
    PmnSettings,
    WdaeSettings,
    WeightPropagation,
)
from epcore.generators.lwof import LwofGenerator
from epcore.generators.pmn import PmnGenerator
from epcore.generators.wdae import WdaeGenerator

FORMAT = "epcore weight generators 1"


def build_generator(
    settings: Generator, base_weights: Tensor, scale: Tensor, propagation: WeightPropagation | None
) -> WeightGenerator:
    """The untrained generator beside the base weights `(classes, D)` and the scale of stage 1.

    Raises:
        UserError: for embedding propagation without a denoising autoencoder.
    """
    if isinstance(settings, WdaeSettings):
        return WdaeGenerator(settings, base_weights, scale, propagation)
    if propagation is not None:
        raise UserError(
            "config/imagenet-fs.yaml: embedding propagation stands behind a denoising "
            f"autoencoder, {settings.kind} has none",
            "take propagation out, or kind: wdae-gnn",
        )
    if isinstance(settings, ClassMeans):
        return ClassMeansGenerator(base_weights, scale)
    if isinstance(settings, PmnSettings):
        return PmnGenerator(settings, base_weights, scale)
    return LwofGenerator(settings, base_weights, scale)


def read_head(checkpoint: Path) -> dict[str, Tensor]:
    """Weights and scale of the cosine classifier in a checkpoint of stage 1.

    Raises:
        UserError: if it is missing, damaged or has no such classifier.
    """
    content = load_safely(checkpoint)
    head = content.get("class_head") if isinstance(content, dict) else None
    if not isinstance(head, dict) or head.keys() != {"weight", "scale"}:
        raise UserError(f"{checkpoint} has no cosine classifier", REMEDY)
    if problem := problem_of(head):
        raise UserError(f"{checkpoint}: the numbers of its cosine classifier {problem}", REMEDY)
    return head


def save_generators(path: Path, kind: str, states: Mapping[int, dict[str, Tensor]]) -> None:
    """Writes the weights of generators, by the K that they were trained with."""
    save_atomically(path, {"format": FORMAT, "kind": kind, "states": dict(states)})


def load_generators(path: Path, kind: str) -> dict[int, dict[str, Tensor]]:
    """The weights of generators by K.

    Raises:
        UserError: if the file is missing, damaged or of generators of another kind.
    """
    content = load_safely(path)
    remedy = "delete it and run the same command again to train it anew"
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"{path} holds no weight generators of this program", remedy)
    if content.get("kind") != kind:
        raise UserError(f"{path} holds generators {content.get('kind')}, not {kind}", remedy)
    states: Any = content.get("states")
    problems = map(problem_of, states.values()) if isinstance(states, dict) else ["are missing"]
    if problem := next(filter(None, problems), None):
        raise UserError(f"{path}: its weights {problem}", remedy)
    return dict(states)
