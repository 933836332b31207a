"""Settings of a classifier that are chosen on validation episodes, before tests are read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from epcore.data.episodes import Episodes
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference, combinations, with_settings
from epcore.evaluation.solve import solve
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
    held_out = Episodes.load(episodes) if episodes is not None else None
    for chosen in combinations(stage.grid):
        inference = Inference(with_settings(stage.propagation, chosen))
        inference.check(values, base)
        accuracy = None
        if held_out is not None:
            results = solve(features, held_out, inference, base)
            accuracy = float(results.accuracies.mean())
        found.append(Choice(inference, chosen, accuracy))
    return max(found, key=lambda each: each.accuracy or 0)
