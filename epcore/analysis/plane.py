"""Classes in two dimensions, and what a classifier makes of every location of the plane.

The plane is that of the points themselves, although the classifier sees propagated ones: to
classify a location, it joins the graph as one more node without a label, embeddings are
propagated over points and location together, and the classifier decides the location's class from
its embedding and those of the points. So each location has a graph of its own, and no location
influences another.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.prototypes import Prototypes
from epcore.propagation import LabelPropagation

CLASSES = 3
# Pairs of nodes at once: few enough for a processor's cache, in which they take half the time.
PAIRS = 50_000

# Scores (..., C) of the last of embeddings (..., n + 1, D) from labels (n, C) of the first n,
# one-hot, or zero where a point has none.
Classifier = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Scene:
    """Points `(n, 2)` with their classes `(n,)`, the same number of each class in turn."""

    points: np.ndarray
    classes: np.ndarray

    @classmethod
    def draw(cls, count: int, spread: float, random: np.random.Generator) -> "Scene":
        """Normal with deviation `spread` around three centers on the unit circle."""
        classes = np.arange(CLASSES).repeat(count)
        angles = np.pi / 2 + 2 * np.pi * classes / CLASSES
        centers = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return cls(centers + random.normal(0, spread, centers.shape), classes)

    def labels(self, of_each: int) -> Tensor:
        """One-hot labels `(n, C)`, float64, of the first points of each class."""
        labels = functional.one_hot(torch.from_numpy(self.classes), CLASSES).double()
        count = len(self.classes) // CLASSES
        labels[torch.arange(len(labels)) % count >= of_each] = 0
        return labels


def by_label_propagation(alpha: float) -> Classifier:
    """Label propagation to the last node: log-scores."""
    propagate = LabelPropagation(alpha)

    def classify(embeddings: Tensor, labels: Tensor) -> Tensor:
        padded = functional.pad(labels, (0, 0, 0, 1)).expand(*embeddings.shape[:-1], -1)
        scores: Tensor = propagate(embeddings, padded)[..., -1, :]
        return scores

    return classify


def by_nearest_point(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Minus the squared distance to the nearest point of each class; all points have labels."""
    distances = (embeddings[..., :-1, :] - embeddings[..., -1:, :]).square().sum(dim=-1)
    return -distances.reshape(*distances.shape[:-1], CLASSES, -1).amin(dim=-1)


def by_prototypes(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Logits of the mean of each class; all points have labels."""
    episodes = EpisodeBatch(embeddings, CLASSES, len(labels) // CLASSES, queries=1)
    return Prototypes().scores(episodes)[..., 0, :]


def location_scores(
    points: np.ndarray, labels: Tensor, x: np.ndarray, y: np.ndarray,
    propagate: nn.Module, classify: Classifier,
) -> np.ndarray:  # fmt: skip
    """Scores `(C, ny, nx)`, float64, at the locations of x `(nx,)` and y `(ny,)`.

    points `(n, 2)`, their labels `(n, C)`. Each location is a node of its own graph; see the
    docstring of this module.
    """
    locations = torch.from_numpy(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 1, 2))
    fixed = torch.from_numpy(points)
    scores = []
    for chunk in torch.split(locations, max(1, PAIRS // (len(points) + 1) ** 2)):
        nodes = torch.cat([fixed.expand(len(chunk), -1, -1), chunk], dim=1)
        scores.append(classify(propagate(nodes), labels))
    return torch.cat(scores).T.reshape(-1, len(y), len(x)).numpy()
