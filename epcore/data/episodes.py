"""Episodes: sampled once from a seed, frozen in a file, the same for every method."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epcore.data.arrays import load_arrays, save_arrays
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.files import Provenance
from epcore.plan.settings import Split
from epcore.plan.stages import EpisodesStage


@dataclass(frozen=True)
class Episodes:
    """Row numbers into a store.

    support `(episodes, way, shot)`, query `(episodes, way, queries)` and unlabeled
    `(episodes, way, images)`, which may have no images, int64; the position along `way` is the
    class of the episode. The three never share an image.
    """

    support: np.ndarray
    query: np.ndarray
    unlabeled: np.ndarray

    def __post_init__(self) -> None:
        parts = (self.support, self.query, self.unlabeled)
        if any(part.ndim != 3 for part in parts):
            raise ValueError("support, query, unlabeled must have shape (episodes, way, images)")
        if len({part.shape[:2] for part in parts}) != 1:
            raise ValueError("support, query and unlabeled must have the same episodes and way")
        rows = np.sort(self.images(), axis=1)
        if rows.dtype != np.int64 or (rows < 0).any():
            raise ValueError("support, query, unlabeled must hold row numbers: int64, 0 or more")
        if (rows[:, 1:] == rows[:, :-1]).any():
            raise ValueError("an image occurs twice in one episode")

    def __len__(self) -> int:
        return len(self.support)

    def images(self) -> np.ndarray:
        """All rows of each episode `(episodes, N)`: support, then query, then unlabeled."""
        parts = (self.support, self.query, self.unlabeled)
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def unique_image_indices(self) -> np.ndarray:
        """The distinct rows that any episode uses, ascending."""
        return np.unique(self.images())

    def save(self, path: Path) -> None:
        save_arrays(path, support=self.support, query=self.query, unlabeled=self.unlabeled)

    @classmethod
    def load(cls, path: Path) -> "Episodes":
        """Raises `UserError` if the file is damaged or its episodes are not disjoint."""
        return load_arrays(path, cls, ("support", "query", "unlabeled"), "episode file")


def sample(
    store: ImageStore,
    split: Split,
    way: int,
    shot: int,
    queries: int,
    episodes: int,
    seed: int | Sequence[int],
    labeled: int | None = None,
    unlabeled: int = 0,
) -> Episodes:
    """Classes uniformly without replacement, then images of each class likewise (paper, 3.2).

    The authors' code draws images without reuse across episodes until a class runs out; the
    paper's text, followed here, makes episodes independent.

    `labeled` of the shot stay the support, the others become unlabeled; `unlabeled` images of
    each class more are drawn from those that are left, or as many as the smallest class has left,
    as in the authors' code. Neither changes which images are drawn before, so that queries are the
    same with and without them.

    Raises:
        UserError: if the split has fewer classes than `way`, or a class too few images.
    """
    generator = np.random.default_rng(seed)
    classes = store.class_indices(split)
    rows = [np.flatnonzero(store.labels == label) for label in classes]
    if len(classes) < way:
        raise UserError(
            f"data set {store.name}: {way}-way episodes need {way} classes, split {split} has "
            f"{len(classes)}; lower `way` or add classes"
        )
    smallest = min(range(len(rows)), key=lambda index: len(rows[index]))
    least = shot + queries + (1 if unlabeled else 0)
    if len(rows[smallest]) < least:
        some = " and an unlabeled image" if unlabeled else ""
        raise UserError(
            f"data set {store.name}: {shot}-shot episodes with {queries} queries{some} need "
            f"{least} images a class, class {store.classes[classes[smallest]].name!r} has "
            f"{len(rows[smallest])}; lower `queries` or add images"
        )
    unlabeled = min(unlabeled, len(rows[smallest]) - shot - queries)
    drawn = np.empty((episodes, way, shot + queries), dtype=np.int64)
    chosen = np.empty((episodes, way), dtype=np.int64)
    for episode, picked in zip(drawn, chosen, strict=True):
        picked[:] = generator.choice(len(rows), way, replace=False)
        for position, index in enumerate(picked):
            episode[position] = generator.choice(rows[index], shot + queries, replace=False)
    more = np.empty((episodes, way, unlabeled), dtype=np.int64)
    for episode, picked, others in zip(drawn, chosen, more, strict=True):
        for position, index in enumerate(picked):
            left = np.setdiff1d(rows[index], episode[position], assume_unique=True)
            others[position] = generator.choice(left, unlabeled, replace=False)
    kept = shot if labeled is None else labeled
    return Episodes(
        support=drawn[:, :, :kept],
        query=drawn[:, :, shot:],
        unlabeled=np.concatenate([drawn[:, :, kept:shot], more], axis=2),
    )


def run(stage: EpisodesStage, data: Path, out: Path) -> None:
    """The stage `episodes`."""
    provenance = Provenance("episodes", stage.model_dump(mode="json"), [data / "store.json"])
    settings = stage.model_dump(exclude={"stage_version"})
    episodes = sample(ImageStore.open(data), **settings)
    episodes.save(out)
    provenance.write(
        out,
        images=len(episodes.unique_image_indices()),
        unlabeled_per_class=episodes.unlabeled.shape[2],
    )
