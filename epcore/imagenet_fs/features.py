"""Features of every image of a data set, computed once, in constant memory, and resumable.

1.28 million images x 512 floats are 2.6 GB: they are written chunk by chunk into a file that
others map, and no array or mapping of the whole is ever in memory.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from epcore.backbones.base import Backbone
from epcore.backbones.checkpoint import load_backbone
from epcore.data.augment import Augmenter
from epcore.data.device_images import to_device
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.files import Provenance, publish, reserve, write_text
from epcore.imagenet_fs.config import ImageFeaturesConfig
from epcore.runtime.device import autocast, choose_device, describe, set_precision

CHUNK = 4096  # images between two marks of how far it got
BATCH = 256


@dataclass(frozen=True)
class ImageFeatures:
    """A data set and the features of all its images, float32 `(N, D)`, memory-mapped."""

    store: ImageStore
    values: np.ndarray

    def of(self, rows: np.ndarray) -> Tensor:
        """Features `(..., D)` of store rows `(...)`.

        Raises:
            UserError: if one is not finite.
        """
        values = torch.from_numpy(np.asarray(self.values[rows]))
        if not values.isfinite().all():
            raise UserError(
                f"features of data set {self.store.name} are not finite",
                "delete them and run the same command again to compute them anew",
            )
        return values

    @classmethod
    def open(cls, data: Path, features: Path) -> "ImageFeatures":
        """A data set and the feature file of its images."""
        values = np.load(features, mmap_mode="r", allow_pickle=False)
        return cls(ImageStore.open(data), values)


def open_both(data: Path, queries: Path, features: Path) -> tuple[ImageFeatures, ImageFeatures]:
    """The features of the images that weights are learned from, and of the queries."""
    return (
        ImageFeatures.open(data, features / "images.npy"),
        ImageFeatures.open(queries, features / "queries.npy"),
    )


@torch.no_grad()
def extract(
    backbone: Backbone,
    store: ImageStore,
    state: Path,
    augmenter: Augmenter,
    device: torch.device,
    precision: str,
) -> tuple[Path, int]:
    """The features of all images of a store, in the file that is returned.

    state: a folder that survives a kill; what is there already is not computed again. Returns the
    number of rows that were there, too. Eval mode: an image's features depend on it alone.
    """
    state.mkdir(parents=True, exist_ok=True)
    target, mark = state / "values.npy", state / "rows.txt"
    rows = len(store.labels)
    shape = (rows, backbone.feature_size)
    # The mark is written after the rows that it counts.
    has_rows = target.is_file() and mark.is_file()
    resumed = rows_done = int(mark.read_text(encoding="utf-8")) if has_rows else 0
    if not rows_done:
        np.lib.format.open_memmap(target, mode="w+", dtype=np.float32, shape=shape).flush()
        reserve(target)
    backbone.eval()
    with tqdm(total=rows, initial=rows_done, desc="features", unit="image", disable=None) as bar:
        while rows_done < rows:
            count = min(CHUNK, rows - rows_done)
            # Mapped anew for each chunk: pages of a mapping count as memory until it is closed.
            images = np.load(store.directory / "images.npy", mmap_mode="r", allow_pickle=False)
            mapped = replace(store, images=images)
            values = np.lib.format.open_memmap(target, mode="r+")
            for start in range(rows_done, rows_done + count, BATCH):
                stop = min(start + BATCH, rows_done + count)
                batch = to_device(mapped.pixels(np.arange(start, stop)), device)
                with autocast(device, precision):
                    features = backbone(augmenter.eval_transform(batch)).float()
                if not features.isfinite().all():
                    raise UserError(
                        f"the network gives features of data set {store.name} that are not finite",
                        "train it anew",
                    )
                values[start:stop] = features.cpu().numpy()
            values.flush()
            del images, mapped, values
            rows_done += count
            write_text(mark, str(rows_done))
            bar.update(count)
    return target, resumed


def run(
    config: ImageFeaturesConfig, data: Path, queries: Path, checkpoint: Path, out: Path
) -> None:
    """The stage `imagenet-fs-features`: of both data sets, into the folder `out`."""
    folders = {out / "images.npy": data, out / "queries.npy": queries}
    write_features(config, folders, checkpoint)


def write_features(
    config: ImageFeaturesConfig, folders: dict[Path, Path], checkpoint: Path
) -> None:
    """A feature file of each data set's folder, with its meta; all once all are computed."""
    files = {out: [data / "store.json", checkpoint] for out, data in folders.items()}
    provenances = {out: Provenance("imagenet-fs-features", config, files[out]) for out in folders}
    device = choose_device()
    set_precision(config.precision)
    backbone = load_backbone(checkpoint, config.backbone, device)
    augmenter, parts = Augmenter((), config.view), {}
    for out, data in folders.items():
        state = _folder(out) / provenances[out].fingerprint
        store = ImageStore.open(data)
        parts[out] = extract(backbone, store, state, augmenter, device, config.precision)
    for out, (values, resumed) in parts.items():
        publish(values, out)
        provenances[out].write(
            out,
            resumed_from_image=resumed or None,
            **describe(device, config.precision),
        )
        shutil.rmtree(values.parent)
        if not any(_folder(out).iterdir()):
            _folder(out).rmdir()


def _folder(out: Path) -> Path:
    return out.parent / f"{out.stem}.state"
