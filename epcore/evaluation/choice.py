"""Settings of a classifier that are chosen on validation episodes, before tests are read."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from epcore.data.episodes import Episodes
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve
from epcore.plan.models import Propagation
from epcore.plan.stages import EvaluateStage


@dataclass(frozen=True)
class Choice:
    """A method; the settings of it that were chosen, and their accuracy on validation, if any."""

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
