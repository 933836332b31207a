"""Trained networks that turn picture files into features."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from epcore.backbones.checkpoint import load_backbone
from epcore.data.augment import Augmenter
from epcore.data.datasets import Pixels
from epcore.data.pictures import decode, read_all
from epcore.errors import UserError
from epcore.evaluation.config import EmbedConfig
from epcore.runtime.device import autocast, set_precision

TIMM = "timm:"  # before the name of a network of timm


@dataclass(frozen=True)
class ImageNetwork:
    """A network in eval mode on its device, with the way in which it sees pictures.

    read: a tensor of a picture, from the content of its file and its name. prepare: the input of
    `module`, `(n, 3, h, w)`, of what was read of n pictures, on the device. source: how messages
    call its weights.
    """

    module: nn.Module
    read: Callable[[bytes, str], Tensor]
    prepare: Callable[[Tensor], Tensor]
    device: torch.device
    precision: str
    source: str

    @torch.no_grad()
    def features(self, paths: Sequence[Path], batch: int) -> np.ndarray:
        """Features float32 `(n, D)` of pictures, `batch` at a time.

        Raises:
            UserError: if a picture cannot be read, or if features are not finite.
        """
        set_precision(self.precision)
        parts = []
        with tqdm(total=len(paths), desc="embed", unit="image", disable=None) as bar:
            for images in self._batches(paths, batch):
                with autocast(self.device, self.precision):
                    features = self.module(self.prepare(images.to(self.device)))
                parts.append(features.float().cpu().numpy())
                bar.update(len(images))
        values = np.concatenate(parts)
        if not np.isfinite(values).all():
            raise UserError(f"{self.source} gives features that are not finite", "give others")
        return values

    def _batches(self, paths: Sequence[Path], batch: int) -> Iterator[Tensor]:
        encoded = ((row, str(path), path.read_bytes()) for row, path in enumerate(paths))
        images = (image for _, image in read_all(encoded, self.read))
        while part := list(islice(images, batch)):
            yield torch.stack(part)


def of_checkpoint(
    weights: Path, config: EmbedConfig, size: int, device: torch.device
) -> ImageNetwork:
    """A checkpoint's network; pictures are resized to `size` pixels and seen as the config says.

    Raises:
        UserError: if the checkpoint cannot be read, or `size` leaves nothing to its last layer.
    """
    module = load_backbone(weights, config.backbone, device)
    augmenter = Augmenter((), config.view)
    blank = torch.zeros(1, size, size, 3, dtype=torch.uint8, device=device)
    try:
        module(augmenter.eval_transform(blank))
    except RuntimeError:
        raise UserError(f"--size {size}: too few pixels for this network", "give more") from None

    def read(data: bytes, name: str) -> Tensor:
        return torch.tensor(decode(data, name, size, Pixels(), upright=True))

    return ImageNetwork(
        module, read, augmenter.eval_transform, device, config.precision, str(weights)
    )
