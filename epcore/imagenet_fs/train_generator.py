"""Stage 2: a generator of class weights learns from fake novel classes, on features."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from epcore.backbones.base import parameter_count
from epcore.errors import UserError
from epcore.generators.base import Task
from epcore.imagenet_fs.build import build_generator, read_head, save_generators
from epcore.imagenet_fs.classes import Subsets
from epcore.imagenet_fs.config import GeneratorConfig, GeneratorTraining
from epcore.imagenet_fs.exemplars import Exemplars
from epcore.imagenet_fs.features import ImageFeatures, open_both
from epcore.imagenet_fs.trials import Queries, hits, weights_of_trials
from epcore.runtime.device import choose_device, describe
from epcore.training.loop import Outcome, fit, seed_of
from epcore.training.session import Session


@dataclass(frozen=True)
class FakeEpisode:
    """Positions among the base classes, and rows of their images.

    base `(b,)` and novel `(n,)` classes; exemplars `(n, K)`; queries `(q,)`, no exemplar among
    them, and their classes `(q,)`, counted through base and then novel.
    """

    base: np.ndarray
    novel: np.ndarray
    exemplars: np.ndarray
    queries: np.ndarray
    expected: np.ndarray


def sample(
    first: np.ndarray,
    counts: np.ndarray,
    training: GeneratorTraining,
    shots: int,
    rng: np.random.Generator,
) -> FakeEpisode:
    """An episode of base classes whose images are the `counts` rows from `first` on.

    Novel classes are drawn anew; their exemplars and queries are different images. Each query of a
    base class is of a class drawn uniformly, then of one of its images.
    """
    novel, base = np.split(rng.permutation(len(first)), [training.novel])
    novel.sort()
    base.sort()
    needed = shots + training.novel_queries
    rows = np.stack([first[c] + rng.choice(counts[c], needed, replace=False) for c in novel])
    base_queries = rng.integers(len(base), size=training.base_queries)
    of_base = first[base[base_queries]] + rng.integers(counts[base[base_queries]])
    of_novel = np.repeat(len(base) + np.arange(len(novel)), training.novel_queries)
    return FakeEpisode(
        base,
        novel,
        rows[:, :shots],
        np.concatenate([of_base, rows[:, shots:].ravel()]),
        np.concatenate([base_queries, of_novel]),
    )


class GeneratorTask:
    """Cross-entropy of episodes' queries among all their classes, plus the generator's penalty.

    Validation is the top-5 accuracy among the novel classes of split val, over frozen exemplars.
    """

    def __init__(
        self,
        config: GeneratorConfig,
        shots: int,
        images: ImageFeatures,
        queries: ImageFeatures,
        exemplars: Exemplars,
        head: dict[str, Tensor],
        device: torch.device,
    ) -> None:
        self.config, self.shots, self.images, self.device = config, shots, images, device
        self.training, self.exemplars = config.training, exemplars
        self.steps = self.training.steps
        novel = self.training.novel * (shots + self.training.novel_queries)
        self.images_per_step = self.training.batch_size * (novel + self.training.base_queries)
        subsets = Subsets.of(images.store, "val")
        self.first = np.searchsorted(images.store.labels, subsets.base)
        self.counts = np.searchsorted(images.store.labels, subsets.base, "right") - self.first
        self._check(subsets)
        self.queries = Queries.of(queries, subsets, device)
        torch.manual_seed(seed_of(config.seed, "imagenet-fs generator", "weights"))
        self.model = build_generator(
            config.generator, head["weight"], head["scale"], config.propagation
        ).to(device)

    def _check(self, subsets: Subsets) -> None:
        training, name = self.training, self.images.store.name
        if training.novel >= len(subsets.base):
            raise UserError(
                f"data set {name}: of its {len(subsets.base)} base classes {training.novel} "
                "cannot be fake novel ones",
                "set training.novel to less",
            )
        needed, smallest = self.shots + training.novel_queries, int(self.counts.min())
        if smallest < needed:
            raise UserError(
                f"data set {name}: its smallest base class has {smallest} images, episodes "
                f"with K = {self.shots} need {needed}",
                "set training.novel_queries to less",
            )

    def seed(self, epoch: int) -> int:
        return seed_of(self.config.seed, "imagenet-fs generator", self.shots, epoch)

    def losses(self, epoch: int, start: int, generator: torch.Generator) -> Iterator[Tensor]:
        for step in range(start, self.steps):
            seed = seed_of(self.config.seed, "imagenet-fs episodes", self.shots, epoch, step)
            rng = np.random.default_rng(seed)
            yield self.loss(
                [
                    sample(self.first, self.counts, self.training, self.shots, rng)
                    for _ in range(self.training.batch_size)
                ]
            )

    def loss(self, episodes: list[FakeEpisode]) -> Tensor:
        """Mean over the queries of the episodes, plus the penalty."""

        def stacked(name: str) -> np.ndarray:
            return np.stack([getattr(episode, name) for episode in episodes])

        base, novel, expected = (
            torch.from_numpy(stacked(name)).to(self.device)
            for name in ("base", "novel", "expected")
        )
        exemplars, queries = (
            self.images.of(stacked(name)).to(self.device) for name in ("exemplars", "queries")
        )
        weights, penalty = self.model.weights_and_penalty(Task(base, exemplars), novel)
        logits = self.model.logits(queries, weights)
        return functional.cross_entropy(logits.flatten(0, 1), expected.flatten()) + penalty

    @torch.no_grad()
    def validate(self) -> tuple[float, float]:
        base = len(self.first)
        accuracies, losses = [], []
        is_novel = self.queries.expected >= self.queries.base
        features = self.queries.features[is_novel]
        expected = self.queries.expected[is_novel] - self.queries.base
        for weights in weights_of_trials(self.model, self.images, self.exemplars, base):
            scores = self.model.logits(features, weights[base:])
            accuracies.append(hits(scores, expected).double().mean())
            losses.append(functional.cross_entropy(scores, expected).double())
        return float(torch.stack(accuracies).mean()), float(torch.stack(losses).mean())


def run(
    config: GeneratorConfig,
    data: Path,
    queries: Path,
    features: Path,
    checkpoint: Path,
    exemplars: list[Path],
    out: Path,
) -> None:
    """The stage `imagenet-fs-generator`; `features` is the folder of both data sets' features.

    `exemplars` are those of split val, in the order of the stage's shots.
    """
    files = [features / f"{part}.npy" for part in ("images", "queries")]
    session = Session("imagenet-fs-generator", config, [*files, checkpoint, *exemplars], out)
    device = choose_device()
    images, tested = open_both(data, queries, features)
    head = read_head(checkpoint)
    outcomes: dict[str, Outcome] = {}
    for shots, file in zip(config.shots, exemplars, strict=True):
        stored_exemplars = Exemplars.load(file, images.store, "val", shots)
        task = GeneratorTask(config, shots, images, tested, stored_exemplars, head, device)
        name, training = f"-{shots}shot", config.training
        label = f"{config.generator.kind}{name}"
        outcomes[name] = fit(task, training, config.seed, session.state(name), label)
    states = {shots: outcomes[f"-{shots}shot"].weights for shots in config.shots}
    save_generators(out, config.generator.kind, states)
    session.finish(
        outcomes,
        parameters=parameter_count(task.model),
        **describe(device, "fp32"),
    )
