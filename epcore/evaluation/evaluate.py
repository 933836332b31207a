"""Accuracy of every frozen episode, from cached features."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from epcore.classifiers import EpisodeBatch
from epcore.data.episodes import Episodes
from epcore.errors import UserError
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.files import Provenance, require, write_text
from epcore.plan.stages import EvaluateStage
from epcore.propagation import DegenerateFeaturesError

# Episodes solved at once: few enough for the caches; and points squared, for graphs in memory.
BATCH, PAIRS = 16, 2_000_000


@dataclass(frozen=True)
class Results:
    """accuracies and cross-entropy losses, each float64 `(episodes,)`."""

    accuracies: np.ndarray
    losses: np.ndarray


def query_labels(way: int, queries: int, device: torch.device | None = None) -> Tensor:
    """Classes `(way * queries,)` of the query images, in the order of an episode's rows."""
    return torch.arange(way, device=device).repeat_interleave(queries)


@torch.no_grad()
def solve(features: Features, episodes: Episodes, inference: Inference) -> Results:
    """Classifies the queries of every episode; accuracies in [0, 1]."""
    way, shot = episodes.support.shape[1:]
    labels = query_labels(way, episodes.query.shape[2])
    images = episodes.images()
    batch = max(1, min(BATCH, PAIRS // images.shape[1] ** 2))
    accuracies, losses = [], []
    for start in range(0, len(images), batch):
        points = features.of(images[start : start + batch])
        logits = inference.scores(EpisodeBatch(points, way, shot, len(labels)))
        expected = labels.expand(len(logits), -1)
        accuracies.append((logits.argmax(dim=-1) == expected).double().mean(dim=1))
        loss = functional.cross_entropy(logits.mT, expected, reduction="none")
        losses.append(loss.double().mean(dim=1))
    return Results(torch.cat(accuracies).numpy(), torch.cat(losses).numpy())


def run(stage: EvaluateStage, features: Path, episodes: list[Path], out: list[Path]) -> None:
    """The stage `evaluate`: for each file of episodes a CSV with the columns episode, accuracy.

    Its meta has the classifier with all its settings, those that nobody set included.
    """
    if len(episodes) != len(out):
        raise UserError(
            f"--episodes: {len(episodes)} files, but --out: {len(out)}; give one --out for each"
        )
    require(features, "input", "run the stage that makes it first")
    loaded = Features.load(features)
    for tested, scores in zip(episodes, out, strict=True):
        _score(stage, features, loaded, tested, scores)


def _score(
    stage: EvaluateStage, features: Path, loaded: Features, episodes: Path, out: Path
) -> None:
    """Scores one file of episodes on the features that were loaded from `features`."""
    provenance = Provenance("evaluate", stage.model_dump(mode="json"), [features, episodes])
    inference = Inference(stage.propagation)
    try:
        results = solve(loaded, Episodes.load(episodes), inference)
    except DegenerateFeaturesError as error:
        raise UserError(f"{features}: {error}; train its checkpoint for longer") from None
    lines = [f"{number},{accuracy:.6f}" for number, accuracy in enumerate(results.accuracies)]
    write_text(out, "\n".join(["episode,accuracy", *lines]) + "\n")
    method = inference.classifier
    resolved = {"name": method.name, **method.model_dump(mode="json")}
    provenance.write(out, episodes=len(lines), classifier=resolved)
