"""Accuracy and loss of every episode, from cached features."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from epcore.classifiers.episodes import EpisodeBatch
from epcore.data.episodes import Episodes
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.propagation import DegenerateFeaturesError

# Episodes solved at once: enough for classifiers of many small steps, few enough for the caches.
# And points squared, for graphs in memory.
BATCH, PAIRS = 100, 2_000_000
# For features that say nothing.
ADVICE = (
    "look whether the images are all alike (epcore contact-sheet); if not, train its checkpoint "
    "for longer"
)


@dataclass(frozen=True)
class Results:
    """accuracies and cross-entropy losses, each float64 `(episodes,)`."""

    accuracies: np.ndarray
    losses: np.ndarray

    @classmethod
    def of(cls, scored: Iterable[tuple[Tensor, Tensor]]) -> Self:
        """Of logits `(episodes, queries, way)` and classes `(episodes, queries)`, in parts."""
        accuracies, losses = [], []
        for logits, expected in scored:
            accuracies.append((logits.argmax(dim=-1) == expected).double().mean(dim=1))
            loss = functional.cross_entropy(logits.mT, expected, reduction="none")
            losses.append(loss.double().mean(dim=1))
        return cls(torch.cat(accuracies).numpy(), torch.cat(losses).numpy())


def solve(
    features: Features,
    episodes: Episodes,
    inference: Inference,
    base: BaseClasses | None = None,
    label: str | None = None,
) -> Results:
    """Classifies the queries of every episode; accuracies in [0, 1].

    `label` shows a progress bar.

    Raises:
        DegenerateFeaturesError: if features or the scores of the classifier say nothing.
    """
    return Results.of(scores_of(features, episodes, inference, base, label))


@torch.no_grad()
def scores_of(
    features: Features,
    episodes: Episodes,
    inference: Inference,
    base: BaseClasses | None = None,
    label: str | None = None,
    extra_classes: int = 0,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Logits `(episodes, queries, way)` and classes `(episodes, queries)`, some episodes at a time.

    Of the last `extra_classes` classes of an episode the classifier sees queries alone, and knows
    nothing: their numbers are those from `way` on. `label` shows a progress bar.

    Raises:
        DegenerateFeaturesError: if features or the scores of the classifier say nothing.
    """
    way, shot = episodes.support.shape[1] - extra_classes, episodes.support.shape[2]
    images, labels = episodes.images(way), torch.from_numpy(episodes.query_labels)
    mean, weights = base.tensors if base else (None, None)
    size = max(1, min(BATCH, PAIRS // images.shape[1] ** 2))
    for start in tqdm(
        range(0, len(images), size), label, unit="batch", disable=None if label else True
    ):
        part = slice(start, start + size)
        points, expected = features.of(images[part]), labels[part]
        numbers = torch.arange(start, start + len(points))
        batch = EpisodeBatch(
            points, way, shot, labels.shape[1], mean, weights, numbers,
            unlabeled=way * episodes.unlabeled.shape[2],
        )  # fmt: skip
        logits = inference.scores(batch)
        if not logits.isfinite().all():
            raise DegenerateFeaturesError(
                f"the classifier {inference.classifier.name} gives scores that are not finite, of "
                f"features of up to {points.abs().max():.3g}"
            )
        yield logits, expected
