"""What a network knows of the base classes, for classifiers that take it: once per checkpoint."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from epcore.backbones.checkpoint import Checkpoint
from epcore.data.arrays import load_arrays, save_arrays
from epcore.data.augment import Augmenter
from epcore.data.store import ImageStore
from epcore.evaluation.config import BaseClassesConfig
from epcore.evaluation.embed import embed
from epcore.files import Provenance
from epcore.runtime.device import choose_device, describe, set_precision


@dataclass(frozen=True)
class BaseClasses:
    """mean: of the features of all base images, float32 `(D,)`.

    weights: of the linear layer over the base classes, float32 `(C, D)`; C is 0 where the network
    has none: a checkpoint from elsewhere came without, and the lengths of a cosine layer's weights
    mean nothing.
    """

    mean: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        if self.mean.ndim != 1 or self.weights.shape[1:] != self.mean.shape:
            raise ValueError("mean and weights must have shape (D,) and (C, D)")
        if self.mean.dtype != np.float32 or self.weights.dtype != np.float32:
            raise ValueError("mean and weights must be float32")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.weights).all()):
            raise ValueError("mean and weights must be finite")

    @property
    def tensors(self) -> tuple[Tensor, Tensor | None]:
        """Mean, and weights if there are any."""
        weights = torch.from_numpy(self.weights) if len(self.weights) else None
        return torch.from_numpy(self.mean), weights

    def save(self, path: Path) -> None:
        save_arrays(path, mean=self.mean, weights=self.weights)

    @classmethod
    def load(cls, path: Path) -> "BaseClasses":
        """Raises `UserError` if the file is missing or damaged."""
        return load_arrays(path, cls, ("mean", "weights"), "file of base classes")


def run(config: BaseClassesConfig, data: Path, weights: Path, out: Path) -> None:
    """The stage `base-classes`: images are not augmented, BatchNorm is in eval mode."""
    provenance = Provenance("base-classes", config, [data / "store.json", weights])
    store = ImageStore.open(data)
    device = choose_device()
    set_precision(config.precision)
    checkpoint = Checkpoint.load(weights, config.backbone)
    rows, augmenter = store.image_indices("base"), Augmenter((), config.view)
    network = checkpoint.network(device)
    features = embed(network, store, rows, augmenter, device, config.precision, "base classes")
    features.finite(f"{weights} gives", "train it again, or give other weights")
    head = None if checkpoint.cosine_head else checkpoint.class_head.get("weight")
    none = torch.empty((0, features.values.shape[1]))
    BaseClasses(
        features.values.mean(axis=0, dtype=np.float64).astype(np.float32),
        (none if head is None else head.float()).numpy(),
    ).save(out)
    provenance.write(out, images=len(rows), **describe(device, config.precision))
