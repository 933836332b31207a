"""A classifier on frozen episodes of cached features; its settings are chosen on validation."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from epcore.data.episodes import Episodes
from epcore.errors import UserError
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.choice import choose
from epcore.evaluation.config import ClassifierTest
from epcore.evaluation.embed import Features
from epcore.evaluation.solve import ADVICE, Results, solve
from epcore.files import write_text
from epcore.propagation import DegenerateFeaturesError


@dataclass(frozen=True)
class TestedFeatures:
    """Features of a network, its base classes if known, and the episodes that it is tested on.

    source: the file of the features. validation: episodes that settings are chosen on.
    """

    source: Path
    features: Features
    episodes: Episodes
    base: BaseClasses | None
    validation: Episodes | None

    @classmethod
    def load(
        cls,
        features: Path,
        episodes: Path,
        base: Path | None = None,
        validation: Path | None = None,
    ) -> Self:
        """Reads the files.

        Raises:
            UserError: if one is damaged, or episodes are of other images than the features.
        """
        of_images = Features.load(features)
        return cls(
            features,
            of_images,
            of_images.episodes(episodes, features),
            BaseClasses.load(base) if base else None,
            of_images.episodes(validation, features) if validation else None,
        )

    def classify(self, test: ClassifierTest) -> tuple[Results, dict[str, Any]]:
        """Accuracies of the episodes, and what a meta says of the classifier.

        Raises:
            UserError: if there are no episodes to choose settings on, or the features say nothing.
        """
        if test.grid and self.validation is None:
            raise UserError(
                f"{', '.join(test.grid)} of the classifier is chosen on validation episodes",
                "give --validation",
            )
        try:
            choice = choose(test, self.features, self.base, self.validation if test.grid else None)
            begun = time.process_time()
            results = solve(self.features, self.episodes, choice.inference, self.base, choice.name)
            spent = time.process_time() - begun
        except DegenerateFeaturesError as error:
            raise UserError(f"{self.source}: {error}", ADVICE) from None
        seconds = {"seconds_per_1000_episodes": 1000 * spent / len(self.episodes)}
        return results, {**seconds, **choice.facts(self.episodes)}


def write_scores(out: Path, accuracies: Mapping[str, np.ndarray]) -> None:
    """The CSV of the accuracies of single episodes, each `(n,)`, in columns of these names."""
    table = pd.DataFrame(accuracies).rename_axis("episode")
    write_text(out, table.to_csv(float_format="%.6f", lineterminator="\n"))
