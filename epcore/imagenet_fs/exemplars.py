"""Frozen exemplars: which images of the novel classes each trial learns them from."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from epcore.data.arrays import load_arrays, save_arrays
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.files import Provenance
from epcore.imagenet_fs.classes import Subsets, TestedSplit, check_pair
from epcore.imagenet_fs.config import ExemplarsConfig


@dataclass(frozen=True)
class Exemplars:
    """labels: novel classes `(classes,)`; rows: of the store `(trials, classes, K)`; int64."""

    labels: np.ndarray
    rows: np.ndarray

    def save(self, path: Path) -> None:
        save_arrays(path, labels=self.labels, rows=self.rows)

    @classmethod
    def load(cls, path: Path, store: ImageStore, split: TestedSplit, shots: int) -> "Exemplars":
        """Raises `UserError` if the file is damaged, or without K images of each novel class."""
        exemplars = load_arrays(path, cls, ("labels", "rows"), "exemplar file")
        novel, rows = Subsets.of(store, split).novel, exemplars.rows
        remedy = "delete it and run the same command again"
        if not np.array_equal(exemplars.labels, novel):
            raise UserError(
                f"exemplar file {path} is of other classes than the data set has", remedy
            )
        fits = rows.dtype == np.int64 and rows.ndim == 3 and rows.shape[1:] == (len(novel), shots)
        fits = fits and rows.size > 0 and rows.min() >= 0 and rows.max() < len(store.labels)
        fits = fits and (store.labels[rows] == novel[:, None]).all()
        if not fits or (np.diff(np.sort(rows)) == 0).any():
            raise UserError(
                f"exemplar file {path} does not have {shots} images of each class",
                f"it is of another data set: {remedy}",
            )
        return exemplars


def draw(store: ImageStore, split: TestedSplit, shots: int, trials: int, seed: int) -> Exemplars:
    """K different images of every novel class of the split, drawn anew for each trial.

    A trial's draw depends on the seed, the split, K and its number alone, so that more trials
    keep those that there were (authors' code: trial t seeds its generator with t).
    """
    labels = Subsets.of(store, split).novel
    first, last = (np.searchsorted(store.labels, labels, side) for side in ("left", "right"))
    rows = np.empty((trials, len(labels), shots), dtype=np.int64)
    for trial in range(trials):
        rng = np.random.default_rng([seed, get_args(TestedSplit).index(split), shots, trial])
        for position, (start, stop) in enumerate(zip(first, last, strict=True)):
            rows[trial, position] = start + rng.choice(stop - start, shots, replace=False)
    return Exemplars(labels, rows)


def run(config: ExemplarsConfig, data: Path, queries: Path, out: Path) -> None:
    """The stage `imagenet-fs-exemplars`: a file for each split and K, and one meta for all."""
    provenance = Provenance(
        "imagenet-fs-exemplars", config, [data / "store.json", queries / "store.json"]
    )
    store = ImageStore.open(data)
    check_pair(store, ImageStore.open(queries), max(config.shots))
    files = []
    for split, trials in sorted(config.trials.items()):
        for shots in config.shots:
            files.append(out / f"{split}-{shots}shot.npz")
            draw(store, split, shots, trials, config.seed).save(files[-1])
    provenance.write(*files)
