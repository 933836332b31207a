"""Features of the images that the episodes touch: once per checkpoint, then cached."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from epcore.backbones import Backbone
from epcore.checkpoint import load_backbone
from epcore.data.arrays import load_arrays, save_arrays
from epcore.data.augment import Augmenter
from epcore.data.device_images import to_device
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.device import autocast, choose_device, describe, set_precision
from epcore.errors import UserError
from epcore.files import Provenance
from epcore.origin import check_one_store
from epcore.plan.stages import EmbedStage

BATCH = 256


@dataclass(frozen=True)
class Features:
    """rows: int64 `(n,)` store rows, ascending; values: float32 `(n, D)`."""

    rows: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        rows, values = self.rows, self.values
        if rows.dtype != np.int64 or rows.ndim != 1 or not len(rows) or rows[0] < 0:
            raise ValueError("rows must be a list of row numbers: int64, 0 or more")
        if (rows[1:] <= rows[:-1]).any():
            raise ValueError("rows must ascend")
        if values.dtype != np.float32 or values.ndim != 2 or len(values) != len(rows):
            raise ValueError("values must be float32 of shape (rows, D)")
        if not values.size:
            raise ValueError("there are no features")

    def of(self, rows: np.ndarray) -> Tensor:
        """Features `(..., D)` of store rows `(...)`.

        Raises:
            UserError: if a row was not embedded.
        """
        positions = np.searchsorted(self.rows, rows).clip(max=len(self.rows) - 1)
        if (self.rows[positions] != rows).any():
            raise UserError(
                "the features lack images of these episodes: they were embedded for other "
                "episodes; delete the feature file and run the same command again"
            )
        return torch.from_numpy(self.values[positions])

    def save(self, path: Path) -> None:
        save_arrays(path, rows=self.rows, values=self.values)

    @classmethod
    def load(cls, path: Path) -> "Features":
        """Raises `UserError` if the file is damaged or its features are not finite."""
        features = load_arrays(path, cls, ("rows", "values"), "feature file")
        return features.finite(f"{path} has", "embed images with other weights")

    def finite(self, where: str, remedy: str) -> "Features":
        """Raises `UserError` if one is not: accuracies from it would mean nothing."""
        if not np.isfinite(self.values).all():
            raise UserError(f"{where} features that are not finite; {remedy}")
        return self


@torch.no_grad()
def embed(
    backbone: Backbone,
    store: ImageStore,
    rows: np.ndarray,
    augmenter: Augmenter,
    device: torch.device,
    precision: str,
    label: str | None = None,
) -> Features:
    """Features of store rows `(n,)`, ascending, with BatchNorm in eval mode.

    They therefore do not depend on the episode that an image is in. `label` shows a progress bar.
    """
    backbone.eval()
    # On the device, so that a GPU need not wait for the copy of each batch's features.
    values = torch.empty((len(rows), backbone.feature_size), device=device)
    starts: Iterable[int] = range(0, len(rows), BATCH)
    if label is not None:
        starts = tqdm(starts, desc=label, unit="batch", disable=None)
    for start in starts:
        images = to_device(store.pixels(rows[start : start + BATCH]), device)
        with autocast(device, precision):
            features = backbone(augmenter.plain(images))
        values[start : start + BATCH] = features
    return Features(rows, values.cpu().numpy())


def run(stage: EmbedStage, data: Path, weights: Path, episodes: list[Path], out: Path) -> None:
    """The stage `embed`."""
    provenance = Provenance(
        "embed", stage.model_dump(mode="json"), [data / "store.json", weights, *episodes]
    )
    # Weights may have been trained on another one.
    check_one_store([data / "store.json", *episodes])
    store = ImageStore.open(data)
    frozen = [Episodes.of_store(path, store) for path in episodes]
    rows = np.unique(np.concatenate([each.unique_image_indices() for each in frozen]))
    device = choose_device()
    set_precision(stage.precision)
    backbone = load_backbone(weights, stage.backbone, device)
    augmenter = Augmenter((), stage.view)
    features = embed(backbone, store, rows, augmenter, device, stage.precision, "embed")
    features.finite(f"{weights} gives", "train it again, or give other weights").save(out)
    provenance.write(out, images=len(rows), **describe(device, stage.precision))
