"""Features of images with their labels, out of a file of anyone's."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epcore.data.episodes import Pool
from epcore.errors import UserError
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.embed import Features
from epcore.files import check_exists

ARRAYS = ("features", "labels", "base_mean", "base_weights")
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
        arrays, name = dict[str, np.ndarray](), ""
        try:
            with np.load(path, allow_pickle=False) as archive:
                for name in (key for key in ARRAYS if key in archive.files):
                    arrays[name] = archive[name]
        except Exception as error:  # zipfile, zlib and numpy each raise their own
            if "Object arrays" in str(error):
                raise UserError(
                    f"{path}: the array {name!r} is of dtype object",
                    "save labels as text or whole numbers, such as labels.astype(str), and "
                    "all else as floating-point numbers",
                ) from None
            raise UserError(
                f"{path}: this is no .npz file of numbers", f"it must hold {SHAPES}"
            ) from None
        for name in ("features", "labels"):
            if name not in arrays:
                raise UserError(f"{path}: the array {name!r} is missing", f"it must hold {SHAPES}")
        values, labels = arrays["features"], arrays["labels"]
        if np.issubdtype(values.dtype, np.floating):
            with np.errstate(over="ignore"):
                values = values.astype(np.float32)
        if values.ndim != 2 or labels.shape != values.shape[:1]:
            raise UserError(
                f"{path}: features have shape {values.shape} and labels {labels.shape}",
                f"it must hold {SHAPES}",
            )
        if not np.issubdtype(values.dtype, np.floating):
            raise UserError(
                f"{path}: features must be floating-point numbers, not {values.dtype}",
                "save features.astype('float32')",
            )
        if (odd := np.flatnonzero(~np.isfinite(values).all(axis=1))).size:
            raise UserError(
                f"{path}: features must be finite, in row {odd[0]} some are not",
                "correct them, or remove the row",
            )
        if not values.size:
            raise UserError(f"{path}: features of shape {values.shape} are none")
        if labels.dtype.kind not in "iuUSb":
            raise UserError(f"{path}: labels must be whole numbers or text, not {labels.dtype}")
        if labels.dtype.kind == "S":
            labels = np.char.decode(labels, "utf-8", "backslashreplace")
        names, indices = np.unique(labels, return_inverse=True)
        rows = tuple(np.flatnonzero(indices == index) for index in range(len(names)))
        pool = Pool(str(path), tuple(map(str, names)), rows)
        features = Features(np.arange(len(values)), indices, values)
        return cls(features, pool, _base(path, arrays))


def _base(path: Path, arrays: dict[str, np.ndarray]) -> BaseClasses | None:
    size = arrays["features"].shape[1]
    if "base_mean" not in arrays and "base_weights" not in arrays:
        return None
    mean = arrays.get("base_mean")
    if mean is None:
        raise UserError(f"{path}: base_weights without base_mean", f"it must hold {SHAPES}")
    weights = arrays.get("base_weights", np.empty((0, *mean.shape)))
    for name, array in (("base_mean", mean), ("base_weights", weights)):
        if not np.issubdtype(array.dtype, np.floating):
            raise UserError(f"{path}: {name} must be floating-point numbers, not {array.dtype}")
    try:
        base = BaseClasses(mean.astype(np.float32), weights.astype(np.float32))
    except ValueError as error:
        raise UserError(f"{path}: of the base classes {error}") from None
    if base.mean.shape != (size,):
        raise UserError(f"{path}: base_mean has {len(base.mean)} numbers, features have {size}")
    return base
