"""Features of images with their labels, out of a file of anyone's."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epcore.data.episodes import Pool
from epcore.errors import UserError
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.embed import Features
from epcore.files import check_exists

SHAPES = (
    "`features` (n, D), `labels` (n,) and, if there are, `base_mean` (D,), `base_weights` (C, D)"
)


@dataclass(frozen=True)
class Labeled:
    """Features of images of novel classes, and what the network knows of the base classes."""

    features: Features
    pool: Pool
    base: BaseClasses | None

    @classmethod
    def load(cls, path: Path) -> "Labeled":
        """Reads an .npz file.

        Raises:
            UserError: if it is missing, or does not hold such arrays.
        """
        check_exists(path, "feature file", "give one with --features")
        base = None
        try:
            with np.load(path, allow_pickle=False) as archive, np.errstate(over="ignore"):
                values, labels = archive["features"].astype(np.float32), archive["labels"]
                if values.ndim != 2 or labels.shape != values.shape[:1]:
                    shapes = f"features have shape {values.shape} and labels {labels.shape}"
                    raise ValueError(shapes)
                if not np.isfinite(values).all():
                    raise ValueError("features must be finite")
                if {"base_mean", "base_weights"} & {*archive.files}:
                    mean = archive["base_mean"].astype(np.float32)
                    none = np.empty((0, *mean.shape), np.float32)
                    base = BaseClasses(mean, archive.get("base_weights", none).astype(np.float32))
                    if mean.shape != values.shape[1:]:
                        raise ValueError(f"base_mean has shape {mean.shape}")
        except Exception as error:  # zipfile, zlib and numpy each raise their own
            raise UserError(f"{path}: {error}", f"it must hold {SHAPES}") from None
        names, indices = np.unique(labels, return_inverse=True)
        rows = tuple(np.flatnonzero(indices == index) for index in range(len(names)))
        pool = Pool(str(path), tuple(map(str, names)), rows)
        return cls(Features(np.arange(len(values)), indices, values), pool, base)
