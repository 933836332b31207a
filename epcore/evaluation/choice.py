"""Settings of a classifier that are chosen on validation episodes."""

from dataclasses import dataclass
from typing import Any

import torch

from epcore.data.episodes import Episodes
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.config import ClassifierTest
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference, settings_of_grid
from epcore.evaluation.solve import solve


@dataclass(frozen=True)
class Choice:
    """A classifier with the settings chosen for it, and their validation accuracy."""

    inference: Inference
    chosen: dict[str, Any]
    accuracy: float | None

    @property
    def name(self) -> str:
        """The name of the classifier."""
        return self.inference.classifier.name

    def facts(self, tested: Episodes) -> dict[str, Any]:
        """The facts for a meta: the classifier with all its settings, defaults included."""
        settings = self.inference.classifier.model_dump(mode="json")
        return {
            "classifier": {"name": self.name, **settings},
            "assumes": self.inference.assumptions(tested.unlabeled.shape[2] > 0),
            "chosen": self.chosen,
            "validation_accuracy": self.accuracy,
        }


def choose(
    test: ClassifierTest, features: Features, base: BaseClasses | None, held_out: Episodes | None
) -> Choice:
    """The settings of the grid that are most accurate on `held_out`; of equals, the first."""
    values = torch.from_numpy(features.values)
    choices: list[Choice] = []
    for chosen, settings in settings_of_grid(test.propagation, test.grid):
        inference = Inference(settings)
        inference.check(values, base)
        accuracy = None
        if held_out is not None:
            results = solve(features, held_out, inference, base)
            accuracy = float(results.accuracies.mean())
        choices.append(Choice(inference, chosen, accuracy))
    return max(choices, key=lambda choice: choice.accuracy or 0)
