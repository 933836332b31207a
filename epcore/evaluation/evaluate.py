"""Accuracy of every frozen episode, from cached features."""

import itertools
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from tqdm import tqdm

from epcore.classifiers import EpisodeBatch
from epcore.data.episodes import Episodes
from epcore.errors import UserError
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.files import Provenance, require, write_text
from epcore.plan.models import Propagation
from epcore.plan.stages import EvaluateStage
from epcore.propagation import DegenerateFeaturesError

# Episodes solved at once: few enough for the caches; and points squared, for graphs in memory.
BATCH, PAIRS = 16, 2_000_000


@dataclass(frozen=True)
class Results:
    """accuracies and cross-entropy losses, each float64 `(episodes,)`."""

    accuracies: np.ndarray
    losses: np.ndarray


@torch.no_grad()
def solve(
    features: Features,
    episodes: Episodes,
    inference: Inference,
    base: BaseClasses | None = None,
    label: str | None = None,
) -> Results:
    """Classifies the queries of every episode; accuracies in [0, 1].

    `label` shows a progress bar.
    """
    way, shot = episodes.support.shape[1:]
    images, labels = episodes.images(), torch.from_numpy(episodes.query_labels)
    mean, weights = base.tensors if base else (None, None)
    batch = max(1, min(BATCH, PAIRS // images.shape[1] ** 2))
    accuracies, losses = [], []
    starts: Iterable[int] = range(0, len(images), batch)
    if label is not None:
        starts = tqdm(starts, desc=label, unit="batch", disable=None)
    for start in starts:
        part = slice(start, start + batch)
        points, expected = features.of(images[part]), labels[part]
        numbers = torch.arange(start, start + len(points))
        logits = inference.scores(
            EpisodeBatch(points, way, shot, labels.shape[1], mean, weights, numbers)
        )
        accuracies.append((logits.argmax(dim=-1) == expected).double().mean(dim=1))
        loss = functional.cross_entropy(logits.mT, expected, reduction="none")
        losses.append(loss.double().mean(dim=1))
    return Results(torch.cat(accuracies).numpy(), torch.cat(losses).numpy())


def run(
    stage: EvaluateStage,
    features: Path,
    episodes: list[Path],
    out: list[Path],
    base: Path | None = None,
    validation: list[Path] | None = None,
) -> None:
    """The stage `evaluate`: for each file of episodes a CSV with the columns episode, accuracy.

    Settings that are to be chosen are, on the `validation` episodes, before the others are read.
    The meta has the classifier with all its settings, those that nobody set included.
    """
    for name, given in (("out", out), ("validation", validation)):
        if given and len(given) != len(episodes):
            raise UserError(
                f"--episodes: {len(episodes)} files, but --{name}: {len(given)}; give one "
                f"--{name} for each"
            )
    if stage.grid and not validation:
        raise UserError(
            f"{', '.join(stage.grid)} of the classifier is chosen on validation episodes; give "
            "--validation"
        )
    require(features, "input", "run the stage that makes it first")
    loaded = Features.load(features)
    known = BaseClasses.load(base) if base else None
    chosen_on = validation if stage.grid and validation else [None] * len(episodes)
    for tested, scores, held_out in zip(episodes, out, chosen_on, strict=True):
        inputs = [file for file in (features, base, held_out, tested) if file is not None]
        provenance = Provenance("evaluate", stage.model_dump(mode="json"), inputs)
        try:
            choice = choose(stage, loaded, held_out, known)
            _score(choice, loaded, known, tested, scores, provenance)
        except DegenerateFeaturesError as error:
            raise UserError(f"{features}: {error}; train its checkpoint for longer") from None


@dataclass(frozen=True)
class Choice:
    """A method, with the settings that were chosen and their accuracy on validation, if any were."""

    inference: Inference
    chosen: dict[str, Any]
    accuracy: float | None


def choose(
    stage: EvaluateStage, features: Features, episodes: Path | None, base: BaseClasses | None
) -> Choice:
    """The settings of the grid with the highest mean accuracy; of equals, the first."""
    values = torch.from_numpy(features.values)
    found: list[Choice] = []
    for settings in itertools.product(*stage.grid.values()):
        chosen = dict(zip(stage.grid, settings, strict=True))
        inference = Inference(with_settings(stage.propagation, chosen))
        inference.check(values, base)
        accuracy = None
        if episodes is not None:
            results = solve(features, Episodes.load(episodes), inference, base)
            accuracy = float(results.accuracies.mean())
        found.append(Choice(inference, chosen, accuracy))
    return max(found, key=lambda each: each.accuracy or 0)


def with_settings(propagation: Propagation, chosen: dict[str, Any]) -> Propagation:
    """With other settings of its classifier."""
    named = propagation.classifier
    settings = {"name": named} if isinstance(named, str) else named
    classifier = settings | chosen if chosen else named
    return propagation.model_copy(update={"classifier": classifier})


def _score(
    choice: Choice,
    features: Features,
    base: BaseClasses | None,
    episodes: Path,
    out: Path,
    provenance: Provenance,
) -> None:
    """Scores one file of episodes."""
    method = choice.inference.classifier
    begun = time.process_time()
    results = solve(features, Episodes.load(episodes), choice.inference, base, method.name)
    spent = time.process_time() - begun
    lines = [f"{number},{accuracy:.6f}" for number, accuracy in enumerate(results.accuracies)]
    write_text(out, "\n".join(["episode,accuracy", *lines]) + "\n")
    provenance.write(
        out,
        episodes=len(lines),
        classifier={"name": method.name, **method.model_dump(mode="json")},
        assumes=method.assumptions,
        chosen=choice.chosen,
        validation_accuracy=choice.accuracy,
        seconds_per_1000_episodes=1000 * spent / len(lines),
    )
