"""Top-5 accuracy of generated weights, on novel classes alone and together with base classes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from epcore.generators.base import Task, WeightGenerator
from epcore.generators.linear_layer import BaseImages
from epcore.imagenet_fs.classes import Subsets
from epcore.imagenet_fs.config import Measure
from epcore.imagenet_fs.exemplars import Exemplars
from epcore.imagenet_fs.features import ImageFeatures
from epcore.propagation import DegenerateFeaturesError

TOP = 5


def hits(scores: Tensor, expected: Tensor) -> Tensor:
    """Whether fewer than five other classes score as high as the expected one: bool `(n,)`.

    scores `(n, C)`, expected `(n,)`. Ties count against the query: equal scores say nothing.
    """
    own_scores = scores.gather(1, expected[:, None])
    return (~(scores < own_scores)).sum(dim=1) <= TOP


@dataclass(frozen=True)
class Queries:
    """Query images of the scored classes: the scored base ones, then the novel ones.

    features: `(n, D)`; expected: classes `(n,)` in that order; base: how many of the
    classes are base; columns: where the classes are among all base and novel ones `(classes,)`.
    """

    features: Tensor
    expected: Tensor
    base: int
    columns: Tensor

    @classmethod
    def of(cls, queries: ImageFeatures, subsets: Subsets, device: torch.device) -> "Queries":
        labels = np.concatenate([subsets.base[subsets.scored], subsets.novel])
        order = np.full(len(queries.store.classes), -1)
        order[labels] = np.arange(len(labels))
        rows = np.flatnonzero(order[queries.store.labels] >= 0)
        novel = len(subsets.base) + np.arange(len(subsets.novel))
        return cls(
            queries.of(rows).to(device),
            torch.from_numpy(order[queries.store.labels[rows]]).to(device),
            len(subsets.scored),
            torch.from_numpy(np.concatenate([subsets.scored, novel])).to(device),
        )

    def scores(self, generator: WeightGenerator, weights: Tensor) -> Tensor:
        """Scores `(n, classes)` by the weights `(base + novel, D)` of all classes."""
        return generator.logits(self.features, weights[self.columns])

    def accuracies(
        self, scores: Tensor, prior: float, novel_factor: float = 1.0
    ) -> dict[Measure, float]:
        """Top-5 accuracies of scores `(n, classes)`, in [0, 1].

        Scores of novel classes are multiplied by `novel_factor` first.

        novel: queries of novel classes among novel classes. all: all queries among all scored
        classes, each query counts the same. all-prior: the same after making the novel classes'
        probabilities sum to the prior and those of the base classes to the rest.

        Raises:
            DegenerateFeaturesError: if scores are not finite.
        """
        if not scores.isfinite().all():
            raise DegenerateFeaturesError("the scores are not finite")
        of_base, new = scores[:, : self.base], novel_factor * scores[:, self.base :]
        scores = torch.cat([of_base, new], dim=1)
        with_prior = torch.cat(
            [
                of_base.log_softmax(dim=1) + np.log(1 - prior),
                new.log_softmax(dim=1) + np.log(prior),
            ],
            dim=1,
        )
        of_novel = self.expected >= self.base
        novel = hits(new[of_novel], self.expected[of_novel] - self.base)
        accuracies: dict[Measure, Tensor] = {
            "novel": novel,
            "all": hits(scores, self.expected),
            "all-prior": hits(with_prior, self.expected),
        }
        return {measure: float(hit.double().mean()) for measure, hit in accuracies.items()}


def scored_base_images(images: ImageFeatures, subsets: Subsets, device: torch.device) -> BaseImages:
    """The images of those base classes that are scored, on which the code of Batch SGM trains."""
    rows = np.flatnonzero(np.isin(images.store.labels, subsets.base[subsets.scored]))
    classes = np.searchsorted(subsets.base, images.store.labels[rows])
    return BaseImages(images.of(rows).to(device), torch.from_numpy(classes).to(device))


@torch.no_grad()
def weights_of_trials(
    generator: WeightGenerator,
    images: ImageFeatures,
    exemplars: Exemplars,
    base: int,
    step_size: float = 1.0,
) -> Iterator[Tensor]:
    """For each trial the weights `(base + novel, D)` of all base and novel classes."""
    generator.eval()
    device = generator.scale.device
    base_classes = torch.arange(base, device=device)
    for first in range(0, len(exemplars.rows), generator.trials_at_once):
        rows = exemplars.rows[first : first + generator.trials_at_once]
        trials = tuple(range(first, first + len(rows)))
        features = images.of(rows).to(device)  # (trials, n, K, D)
        yield from generator(Task(base_classes.expand(len(rows), -1), features, trials), step_size)
