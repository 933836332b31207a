"""Episodes: sampled once from a seed, frozen in a file, the same for every method."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epcore.data.arrays import load_arrays, save_arrays
from epcore.data.config import EpisodesConfig, Split
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.files import Provenance

NO_IMAGE = -1  # in the place of a query
TRIES = 1000  # draws of shares of classes


@dataclass(frozen=True)
class Episodes:
    """Row numbers into a store.

    support `(episodes, way, shot)`, query `(episodes, way, queries)` and unlabeled
    `(episodes, way, images)`, which may have no images, int64; the position along `way` is the
    class of the episode. The three never share an image. Where a class has fewer queries than
    another one, its last are -1; all episodes have as many queries in all.
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
        counts = (self.query != NO_IMAGE).sum(axis=(1, 2))
        if (counts != counts.max(initial=1)).any():
            raise ValueError("all episodes must have as many queries, one or more")
        rows = np.sort(self.images(), axis=1)
        if rows.dtype != np.int64 or (rows < 0).any():
            raise ValueError("support, query, unlabeled must hold row numbers: int64, 0 or more")
        if (rows[:, 1:] == rows[:, :-1]).any():
            raise ValueError("an image occurs twice in one episode")
        episodes, way, shot = self.support.shape
        if not episodes or way < 2 or not shot:
            raise ValueError("there must be an episode, two classes and a support image of each")

    def __len__(self) -> int:
        return len(self.support)

    def first(self, most: int | None) -> "Episodes":
        """The first `most` episodes, or all."""
        return Episodes(self.support[:most], self.query[:most], self.unlabeled[:most])

    @property
    def query_labels(self) -> np.ndarray:
        """Classes of the queries `(episodes, queries)`, int64, in the order of `images`."""
        places = np.broadcast_to(np.arange(self.query.shape[1])[:, None], self.query.shape)
        labels: np.ndarray = places[self.query != NO_IMAGE].reshape(len(self), -1)
        return labels

    @property
    def unlabeled_count(self) -> int:
        """How many unlabeled images an episode has, of all classes together."""
        return int(self.unlabeled[0].size)

    def images(self, way: int | None = None) -> np.ndarray:
        """All rows of each episode `(episodes, N)`: support, then query, then unlabeled.

        Of all classes but the first `way` there are queries alone.
        """
        query = self.query[self.query != NO_IMAGE]
        parts = (self.support[:, :way], query, self.unlabeled[:, :way])
        return np.concatenate([part.reshape(len(self), -1) for part in parts], axis=1)

    def unique_image_indices(self) -> np.ndarray:
        """The distinct rows that any episode uses, ascending."""
        return np.unique(self.images())

    def are_of(self, labels: np.ndarray, rows: np.ndarray | None = None) -> bool:
        """Whether they can be of images with these labels `(n,)`, of these rows or of the first n.

        The images of a class of an episode have one label, those of two classes have two. `rows`
        ascend.
        """
        images = self.images()
        if rows is None:
            rows = np.arange(len(labels))
        places = np.searchsorted(rows, images).clip(max=len(rows) - 1)
        if (rows[places] != images).any():
            return False
        shot = self.support.shape[2]
        present = labels[places]
        classes = present[:, : self.support.shape[1] * shot : shot]
        expected = [
            np.repeat(classes, shot, axis=1),
            np.take_along_axis(classes, self.query_labels, axis=1),
            np.repeat(classes, self.unlabeled.shape[2], axis=1),
        ]
        apart = (np.diff(np.sort(classes, axis=1), axis=1) > 0).all()
        return bool(apart and (present == np.concatenate(expected, axis=1)).all())

    def save(self, path: Path) -> None:
        save_arrays(path, support=self.support, query=self.query, unlabeled=self.unlabeled)

    @classmethod
    def load(cls, path: Path) -> "Episodes":
        """Raises `UserError` if the file is damaged or its episodes are not disjoint."""
        return load_arrays(path, cls, ("support", "query", "unlabeled"), "episode file")

    @classmethod
    def drawn_from(
        cls, path: Path, labels: np.ndarray, source: Path, rows: np.ndarray | None = None
    ) -> "Episodes":
        """The episodes of a file, as those of `source`; `labels` and `rows` as in `are_of`.

        Raises:
            UserError: as `load`, and if they were drawn from other data.
        """
        episodes = cls.load(path)
        if not episodes.are_of(labels, rows):
            raise UserError(
                f"episode file {path} was drawn from another data set than {source}, which "
                f"has {len(labels)} images and other classes",
                "draw some from this one",
            )
        return episodes


# Where a workflow has the numbers of the episodes of each split.
SETTINGS: dict[Split, str] = {
    "base": " under `recipe: {finetuning: ...}` or `compared` of the scale",
    "val": " in config/protocols.yaml",
    "novel": " in config/protocols.yaml",
}


@dataclass(frozen=True)
class Pool:
    """What episodes are drawn from: the rows of each class, and how messages call it and them.

    grown: what a message says to do once images were added. settings: where it says that the
    numbers of an episode are.
    """

    name: str
    classes: tuple[str, ...]
    rows: tuple[np.ndarray, ...]
    grown: str = ""
    settings: str = ""


def pool_of(store: ImageStore, split: Split) -> Pool:
    """The classes of a split of a data set."""
    indices = store.class_indices(split)
    return Pool(
        f"data set {store.name}, split {split}",
        tuple(store.classes[index].name for index in indices),
        tuple(np.flatnonzero(store.labels == index) for index in indices),
        grown=" and run Snakemake again with --forcerun data",
        settings=SETTINGS[split],
    )


def sample(
    pool: Pool,
    way: int,
    shot: int,
    queries: int,
    episodes: int,
    seed: int | Sequence[int],
    labeled: int | None = None,
    unlabeled: int = 0,
    dirichlet: float | None = None,
) -> Episodes:
    """Classes uniformly without replacement, then images of each class likewise (paper, 3.2).

    The authors' code draws images without reuse across episodes until a class runs out; the
    paper's text, followed here, makes episodes independent.

    `labeled` of the shot stay the support, the others become unlabeled; `unlabeled` images of
    each class more are drawn from those that are left, or as many as the smallest class has left,
    as in the authors' code. Neither changes which images are drawn before, so that queries are the
    same with and without them.

    dirichlet: the shares of the classes among the `way * queries` queries are drawn from the
    symmetric Dirichlet distribution of this concentration, again if a class has too few images
    (Veilleux et al. 2021). Classes and support are those of the episodes without it.

    Raises:
        UserError: if there are fewer classes than `way`, or a class too few images.
    """
    generator = np.random.default_rng(seed)
    rows = pool.rows
    if len(rows) < way:
        raise UserError(
            f"{pool.name}: {way}-way episodes need {way} classes, there are {len(rows)}",
            f"add classes{pool.grown}, or lower `way`{pool.settings}",
        )
    smallest = min(range(len(rows)), key=lambda index: len(rows[index]))
    least = shot + queries + (1 if unlabeled else 0)
    if len(rows[smallest]) < least:
        and_unlabeled = " and an unlabeled image" if unlabeled else ""
        lower = f"`queries`{pool.settings}" if least - queries < len(rows[smallest]) else "`shot`"
        raise UserError(
            f"{pool.name}: {shot}-shot episodes with {queries} queries{and_unlabeled} need {least} "
            f"images a class, class {pool.classes[smallest]!r} has {len(rows[smallest])}",
            f"add images{pool.grown}, or lower {lower}",
        )
    unlabeled = min(unlabeled, len(rows[smallest]) - shot - queries)
    image_rows = np.empty((episodes, way, shot + queries), dtype=np.int64)
    class_labels = np.empty((episodes, way), dtype=np.int64)
    for episode, picked in zip(image_rows, class_labels, strict=True):
        picked[:] = generator.choice(len(rows), way, replace=False)
        for position, index in enumerate(picked):
            episode[position] = generator.choice(rows[index], shot + queries, replace=False)
    query = image_rows[:, :, shot:]
    if dirichlet is not None:
        others = [
            [np.setdiff1d(rows[index], images) for index, images in zip(*part, strict=True)]
            for part in zip(class_labels, image_rows[:, :, :shot], strict=True)
        ]
        query = _unbalanced(pool, others, way * queries, dirichlet, generator)
    unlabeled_rows = np.empty((episodes, way, unlabeled), dtype=np.int64)
    for episode, picked, added in zip(image_rows, class_labels, unlabeled_rows, strict=True):
        for position, index in enumerate(picked):
            remaining = np.setdiff1d(rows[index], episode[position], assume_unique=True)
            added[position] = generator.choice(remaining, unlabeled, replace=False)
    labeled_shot = shot if labeled is None else labeled
    return Episodes(
        support=image_rows[:, :, :labeled_shot],
        query=query,
        unlabeled=np.concatenate([image_rows[:, :, labeled_shot:shot], unlabeled_rows], axis=2),
    )


def _unbalanced(
    pool: Pool,
    remaining: list[list[np.ndarray]],
    queries: int,
    dirichlet: float,
    generator: np.random.Generator,
) -> np.ndarray:
    """Queries `(episodes, way, most)` of the rows that each class of each episode has left."""
    episodes = []
    for classes in remaining:
        for _ in range(TRIES):
            shares = queries * generator.dirichlet([dirichlet] * len(classes))
            counts = np.floor(shares).astype(int)
            # The largest remainders get what rounding down has left.
            counts[np.argsort(counts - shares)[: queries - counts.sum()]] += 1
            if all(count <= len(rows) for count, rows in zip(counts, classes, strict=True)):
                break
        else:
            raise UserError(
                f"{pool.name}: of {TRIES} draws from Dir({dirichlet:g}) each asks for more "
                "queries of a class than it has images",
                f"add images{pool.grown}, or raise `dirichlet` or lower `queries`{pool.settings}",
            )
        pairs = zip(classes, counts, strict=True)
        episodes.append([generator.choice(rows, count, replace=False) for rows, count in pairs])
    largest = max(len(rows) for classes in episodes for rows in classes)
    query = np.full((len(episodes), len(episodes[0]), largest), NO_IMAGE)
    for episode, classes in zip(query, episodes, strict=True):
        for places, rows in zip(episode, classes, strict=True):
            places[: len(rows)] = rows
    return query


def run(config: EpisodesConfig, data: Path, out: Path) -> None:
    """The stage `episodes`."""
    provenance = Provenance("episodes", config, [data / "store.json"])
    settings = config.model_dump(exclude={"stage_version", "split"})
    episodes = sample(pool_of(ImageStore.open(data), config.split), **settings)
    episodes.save(out)
    provenance.write(
        out,
        images=len(episodes.unique_image_indices()),
        unlabeled_per_class=episodes.unlabeled.shape[2],
    )
