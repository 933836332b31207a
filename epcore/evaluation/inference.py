"""The paper's inference phase: embedding propagation, then a classifier (section 3.3)."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from epcore.classifiers import load_classifier
from epcore.classifiers.episodes import EpisodeBatch
from epcore.errors import UserError
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.config import Propagation
from epcore.propagation import EmbeddingPropagation

# Where a person gives what is known of the base classes.
GIVEN = "the array {} in the file of --features (classify), or --base (evaluate)"


class Inference:
    """Classifies the queries of episodes as a recipe says.

    The recipe `net` (the paper's --Net) has no embedding propagation: features are then their
    own embeddings.

    Raises:
        UserError: for settings that the classifier does not have; it begins with `location`.
    """

    def __init__(self, settings: Propagation, location: str = "the recipe") -> None:
        self.propagate: nn.Module = nn.Identity()
        if settings.embedding:
            self.propagate = EmbeddingPropagation(
                settings.embedding_alpha, settings.bandwidth, settings.part
            )
        self.classifier = load_classifier(settings.classifier, dict(settings), location)
        self._location = location

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        """Logits `(..., queries, way)` from features, all images of an episode propagated together.

        The base mean is propagated as if it were the feature of every image.

        Raises:
            UserError: for unlabeled images that the classifier does not take.
        """
        self.check_unlabeled(episodes.unlabeled > 0)
        points, mean = episodes.points, episodes.base_mean
        if self.classifier.centers_on_base and mean is not None:
            # Propagation is linear, and its graph is one of distances: so the mean is propagated.
            points, mean = points - mean, torch.zeros_like(mean)
        propagated = replace(episodes, points=self.propagate(points), base_mean=mean)
        return self.classifier.scores(propagated)

    def assumptions(self, unlabeled: bool) -> str:
        """What is assumed of episodes, with unlabeled images or without: T, S, B.

        T: all queries of an episode are classified together, which embedding propagation does too.
        S: it takes unlabeled images. B: it assumes that each class has as many queries as any
        other, or as many of the unlabeled images that take their place.
        """
        method, needs = self.classifier, self.classifier.needs
        apart = unlabeled and needs.instead_of_queries and not method.shares_preprocessing
        propagated = not isinstance(self.propagate, nn.Identity)
        holds = {
            "T": propagated or (method.transductive and not apart),
            "S": needs.unlabeled,
            "B": method.balanced,
        }
        return " ".join(letter for letter, assumed in holds.items() if assumed)

    def check_unlabeled(self, has_unlabeled: bool) -> None:
        """Raises `UserError` for episodes with unlabeled images that the classifier cannot take."""
        if has_unlabeled and not self.classifier.needs.unlabeled:
            raise UserError(
                f"{self._location}: the classifier {self.classifier.name} takes no unlabeled "
                "images",
                "choose another one, or a protocol without them",
            )

    def check_trainable(self) -> None:
        """Raises `UserError` if no network can be trained through the classifier."""
        if self.classifier.needs.frozen_features:
            raise UserError(
                f"{self._location}: no network can be fine-tuned through the classifier "
                f"{self.classifier.name}, whose scores have no gradient",
                "name another one in phases.finetuning, or give `tested: pretrained`",
            )

    def check(self, features: Tensor, base: BaseClasses | None) -> None:
        """Raises `UserError` if the classifier needs what these features and base classes lack."""
        method = self.classifier
        if "power" in method.preprocessing and (features < 0).any():
            raise UserError(
                f"{self._location}: the classifier {method.name} takes the root of features, "
                "and some are negative",
                "choose another preprocessing, or a network that ends with a ReLU",
            )
        if method.centers_on_base and base is None:
            raise UserError(
                f"{self._location}: the classifier {method.name} takes the mean feature of "
                "the base images",
                f"give {GIVEN.format('base_mean')}, or choose another preprocessing",
            )
        if method.needs.base_weights and (base is None or len(base.weights) < 2):
            raise UserError(
                f"{self._location}: the classifier {method.name} takes the weights of a "
                "linear layer over two base classes or more",
                f"give {GIVEN.format('base_weights')}, or choose another classifier",
            )


def settings_of_grid(
    propagation: Propagation, grid: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[dict[str, Any], Propagation]]:
    """Every combination of the values of a classifier's settings, and the inference with it.

    Without settings in the grid the combination is empty, and the inference the one given.
    """
    choice = propagation.classifier
    own = {"name": choice} if isinstance(choice, str) else choice
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        yield chosen, propagation.model_copy(update={"classifier": own | chosen})
