"""Features of images by a checkpoint; of class folders a file that `epcore classify` takes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from epcore.backbones.base import Backbone
from epcore.backbones.checkpoint import load_backbone
from epcore.config.scale import MainConfig
from epcore.data.arrays import save_arrays
from epcore.data.augment import Augmenter
from epcore.data.builders.folder import class_folders
from epcore.data.datasets import Pixels
from epcore.data.device_images import to_device
from epcore.data.pictures import decode_all
from epcore.errors import UserError
from epcore.evaluation.embed import BATCH
from epcore.plan import Plan
from epcore.runtime.device import autocast, choose_device, set_precision


@torch.no_grad()
def embedded(
    paths: Sequence[Path],
    weights: Path,
    backbone: str,
    recipe: str,
    size: int,
    settings: Path,
    main: MainConfig,
) -> np.ndarray:
    """Features `(n, D)` of pictures, resized to `size` pixels and seen as the recipe sees them.

    Raises:
        UserError: if a picture or the checkpoint cannot be read, or if features are not finite.
    """
    stage = Plan(settings, main.scale).runs.embed(backbone, recipe)
    device = choose_device()
    set_precision(stage.precision)
    network = load_backbone(weights, stage.backbone, device)
    augmenter = Augmenter((), stage.view)
    _check_size(network, augmenter, size)
    parts = []
    with tqdm(total=len(paths), desc="embed", unit="image", disable=None) as bar:
        for pixels in _batches(paths, size):
            with autocast(device, stage.precision):
                features = network(augmenter.eval_transform(to_device(pixels, device)))
            parts.append(features.float().cpu().numpy())
            bar.update(len(pixels))
    values = np.concatenate(parts)
    if not np.isfinite(values).all():
        raise UserError(f"{weights} gives features that are not finite", "give other weights")
    return values


def labeled_pictures(images: Path) -> dict[str, list[Path]]:
    """The pictures of each class folder.

    Raises:
        UserError: if a class has none, or there is anything but folders of pictures.
    """
    classes = class_folders(images)
    empty = [str(images / name) for name, files in classes.items() if not files]
    if empty:
        raise UserError(f"{empty[0]} has no pictures", "put some there, or remove it")
    return {name: [images / name / file for file in files] for name, files in classes.items()}


def run(
    images: Path,
    weights: Path,
    backbone: str,
    recipe: str,
    size: int,
    out: Path,
    settings: Path,
    main: MainConfig,
) -> None:
    """The command `embed-folder`: an .npz with `features` (n, D) and `labels` (n,), the folders.

    Raises:
        UserError: see `labeled_pictures` and `embedded`.
    """
    classes = labeled_pictures(images)
    paths = [path for files in classes.values() for path in files]
    values = embedded(paths, weights, backbone, recipe, size, settings, main)
    labels = np.repeat(list(classes), [len(files) for files in classes.values()])
    save_arrays(out, features=values, labels=labels)
    print(f"{out}: {len(values):,} images of {len(classes)} classes")
    print(f"accuracies of its episodes: epcore classify --features {out}")


def _check_size(network: Backbone, augmenter: Augmenter, size: int) -> None:
    """Raises `UserError` if an image of this size leaves nothing to the network's last layer."""
    blank = torch.zeros(
        1, size, size, 3, dtype=torch.uint8, device=next(network.parameters()).device
    )
    try:
        network(augmenter.eval_transform(blank))
    except RuntimeError:
        raise UserError(f"--size {size}: too few pixels for this network", "give more") from None


def _batches(paths: Sequence[Path], size: int) -> Iterator[np.ndarray]:
    """Pictures uint8 `(n, size, size, 3)`, some at a time."""
    encoded = ((row, str(path), path.read_bytes()) for row, path in enumerate(paths))
    decoded = decode_all(encoded, size, Pixels(), upright=True)
    while batch := [pixels for _, pixels in islice(decoded, BATCH)]:
        yield np.stack(batch)
