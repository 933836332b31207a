"""Features of images by a trained network; of class folders a file that `epcore classify` takes."""

from pathlib import Path
from typing import Any

import numpy as np

from epcore.config.scale import MainConfig
from epcore.data.arrays import save_arrays
from epcore.data.builders.folder import class_folders
from epcore.errors import UserError
from epcore.evaluation.image_network import TIMM, ImageNetwork, of_checkpoint
from epcore.files import meta_of, read_meta
from epcore.plan import Plan
from epcore.runtime.device import choose_device

SIZE = 84  # of images where nobody says it


def network_of(
    backbone: str,
    weights: Path | None,
    recipe: str,
    size: int | None,
    settings: Path,
    main: MainConfig,
) -> ImageNetwork:
    """The network that the options of a command name: of a checkpoint, or `timm:NAME`.

    Raises:
        UserError: if it is unknown, or its weights cannot be read.
    """
    device = choose_device()
    if backbone.startswith(TIMM):
        from epcore.evaluation.timm_network import of_timm  # imports torchvision, takes seconds

        return of_timm(backbone.removeprefix(TIMM), weights, device)
    if weights is None:
        raise UserError(f"--backbone {backbone} has no weights of its own", "give --weights")
    config = Plan(settings, main.scale).runs.embed(backbone, recipe)
    return of_checkpoint(weights, config, size or _size_in_training(weights), device)


def _size_in_training(weights: Path) -> int:
    """The side of the images that a checkpoint was trained on, if a meta beside it says so."""
    if not (meta := meta_of(weights)).is_file():
        return SIZE
    with read_meta(meta, "delete it, or give --size") as facts:
        return int(facts.get("image_size", SIZE))


def labeled_pictures(images: Path) -> dict[str, list[Path]]:
    """The pictures of each class folder.

    Raises:
        UserError: if a class has none, or there is anything but folders of pictures.
    """
    classes = class_folders(images)
    empty = [str(images / name) for name, paths in classes.items() if not paths]
    if empty:
        raise UserError(f"{empty[0]} has no pictures", "put some there, or remove it")
    return classes


def run(images: Path, out: Path, batch: int, **network: Any) -> None:
    """The command `embed-folder`: an .npz with `features` (n, D) and `labels` (n,), the folders.

    Raises:
        UserError: see `labeled_pictures`, `network_of` and `ImageNetwork.features`.
    """
    classes = labeled_pictures(images)
    paths = [path for files in classes.values() for path in files]
    values = network_of(**network).features(paths, batch)
    labels = np.repeat(list(classes), [len(files) for files in classes.values()])
    save_arrays(out, features=values, labels=labels)
    print(f"{out}: {len(values):,} images of {len(classes)} classes")
    print(f"accuracies of its episodes: epcore classify --features {out}")
