"""Features of the images of validation and test classes: once per checkpoint, then cached."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from epcore.backbones.base import Backbone
from epcore.backbones.checkpoint import load_backbone
from epcore.data.arrays import load_arrays, save_arrays
from epcore.data.augment import Augmenter
from epcore.data.device_images import to_device
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.evaluation.config import EmbedConfig
from epcore.files import Provenance
from epcore.runtime.device import autocast, choose_device, describe, set_precision

BATCH = 256


@dataclass(frozen=True)
class Features:
    """rows: int64 `(n,)` store rows, ascending; labels: int64 `(n,)`, the classes of their images;
    values: float32 `(n, D)`.
    """

    rows: np.ndarray
    labels: np.ndarray
    values: np.ndarray

    def of(self, rows: np.ndarray) -> Tensor:
        """Features `(..., D)` of store rows `(...)`.

        Raises:
            ValueError: if a row was not embedded.
        """
        positions = np.searchsorted(self.rows, rows).clip(max=len(self.rows) - 1)
        if (self.rows[positions] != rows).any():
            raise ValueError("there are no features of some of these images")
        return torch.from_numpy(self.values[positions])

    def episodes(self, path: Path, source: Path) -> Episodes:
        """The episodes of a file; `source` is what messages call these features.

        Raises:
            UserError: if the file is damaged, or was drawn from images or classes of other data.
        """
        return Episodes.drawn_from(path, self.labels, source, self.rows)

    def save(self, path: Path) -> None:
        save_arrays(path, rows=self.rows, labels=self.labels, values=self.values)

    @classmethod
    def load(cls, path: Path) -> "Features":
        """Raises `UserError` if the file is damaged or its features are not finite."""
        features = load_arrays(path, cls, ("rows", "labels", "values"), "feature file")
        return features.finite(f"{path} has", "embed images with other weights")

    def finite(self, location: str, remedy: str) -> "Features":
        """Raises `UserError` if one is not: accuracies from it would mean nothing."""
        if not np.isfinite(self.values).all():
            raise UserError(f"{location} features that are not finite", remedy)
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
    for start in tqdm(
        range(0, len(rows), BATCH), label, unit="batch", disable=None if label else True
    ):
        images = to_device(store.pixels(rows[start : start + BATCH]), device)
        with autocast(device, precision):
            features = backbone(augmenter.eval_transform(images))
        values[start : start + BATCH] = features
    return Features(rows, store.labels[rows], values.cpu().numpy())


def run(config: EmbedConfig, data: Path, weights: Path, out: Path) -> None:
    """The stage `embed`; weights may have been trained on another data set."""
    provenance = Provenance("embed", config, [data / "store.json", weights])
    store = ImageStore.open(data)
    rows = np.sort(np.concatenate([store.image_indices(split) for split in ("val", "novel")]))
    device = choose_device()
    set_precision(config.precision)
    backbone = load_backbone(weights, config.backbone, device)
    augmenter = Augmenter((), config.view)
    features = embed(backbone, store, rows, augmenter, device, config.precision, "embed")
    features.finite(f"{weights} gives", "train it again, or give other weights").save(out)
    provenance.write(out, images=len(rows), **describe(device, config.precision))
