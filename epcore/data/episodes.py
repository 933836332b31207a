"""Episodes: sampled once from a seed, frozen in a file, the same for every method."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epcore.data.arrays import load_arrays, save_arrays
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.files import Provenance
from epcore.plan.paths import meta
from epcore.plan.settings import Split
from epcore.plan.stages import EpisodesStage


@dataclass(frozen=True)
class Episodes:
    """Row numbers into a store.

    support `(episodes, way, shot)` and query `(episodes, way, queries)`, int64; the position
    along `way` is the class of the episode. Support and query never share an image.
    """

    support: np.ndarray
    query: np.ndarray

    def __post_init__(self) -> None:
        if self.support.ndim != 3 or self.query.ndim != 3:
            raise ValueError("support and query must have shape (episodes, way, images)")
        if self.support.shape[:2] != self.query.shape[:2]:
            raise ValueError("support and query must have the same episodes and way")
        rows = np.sort(self.images(), axis=1)
        if rows.dtype != np.int64 or (rows < 0).any():
            raise ValueError("support and query must hold row numbers: int64, 0 or more")
        if (rows[:, 1:] == rows[:, :-1]).any():
            raise ValueError("an image occurs twice in one episode")

    def __len__(self) -> int:
        return len(self.support)

    def images(self) -> np.ndarray:
        """All rows of each episode `(episodes, way * (shot + queries))`, support first."""
        count = len(self.support)
        return np.concatenate(
            [self.support.reshape(count, -1), self.query.reshape(count, -1)], axis=1
        )

    def touched(self) -> np.ndarray:
        """The distinct rows that any episode uses, ascending."""
        return np.unique(self.images())

    def save(self, path: Path) -> None:
        save_arrays(path, support=self.support, query=self.query)

    @classmethod
    def load(cls, path: Path) -> "Episodes":
        """Raises `UserError` if the file is damaged or its episodes are not disjoint."""
        return load_arrays(path, cls, ("support", "query"), "episode file")


def sample(
    store: ImageStore,
    split: Split,
    way: int,
    shot: int,
    queries: int,
    episodes: int,
    seed: int | Sequence[int],
) -> Episodes:
    """Classes uniformly without replacement, then images of each class likewise (paper, 3.2).

    The authors' code draws images without reuse across episodes until a class runs out; the
    paper's text, followed here, makes episodes independent.

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
    if len(rows[smallest]) < shot + queries:
        raise UserError(
            f"data set {store.name}: {shot}-shot episodes with {queries} queries need "
            f"{shot + queries} images a class, class {store.classes[classes[smallest]].name!r} "
            f"has {len(rows[smallest])}; lower `queries` or add images"
        )
    drawn = np.empty((episodes, way, shot + queries), dtype=np.int64)
    for episode in drawn:
        for position, chosen in enumerate(generator.choice(len(rows), way, replace=False)):
            episode[position] = generator.choice(rows[chosen], shot + queries, replace=False)
    return Episodes(drawn[:, :, :shot], drawn[:, :, shot:])


def run(stage: EpisodesStage, data: Path, out: Path) -> None:
    """The stage `episodes`."""
    provenance = Provenance("episodes", stage.model_dump(mode="json"), [data / "store.json"])
    settings = stage.model_dump(exclude={"stage_version"})
    episodes = sample(ImageStore.open(data), **settings)
    episodes.save(out)
    provenance.write(Path(meta(str(out))), images=len(episodes.touched()))
