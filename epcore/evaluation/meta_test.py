"""Accuracy of a compared method on frozen episodes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from epcore.backbones.checkpoint import REMEDY, Checkpoint, build
from epcore.backbones.config import BackboneConfig
from epcore.classifiers.episodes import EpisodeBatch
from epcore.data.augment import Augmenter, crop_size
from epcore.data.config import View
from epcore.data.device_images import to_device
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.evaluation.classifier_test import write_scores
from epcore.evaluation.config import MetaTestConfig
from epcore.evaluation.embed import BATCH
from epcore.evaluation.solve import Results
from epcore.files import Provenance
from epcore.methods import METHODS, build_method
from epcore.methods.base import EpisodicMethod, Pretrained
from epcore.propagation import DegenerateFeaturesError
from epcore.runtime.device import autocast, choose_device, describe, place, set_precision


class EpisodicTester:
    """Embeds the images of frozen episodes, and classifies their queries.

    batch_statistics: whether support and queries of each episode are embedded and scored by
    themselves with BatchNorm in training mode, so that each depends on the others. Else every image
    is embedded once, with running statistics.
    """

    def __init__(
        self,
        method: EpisodicMethod,
        view: View,
        precision: str,
        device: torch.device,
        batch_statistics: bool = False,
    ) -> None:
        self.method, self.precision, self.device = method, precision, device
        self.augmenter = Augmenter((), view)
        self.batch_statistics = batch_statistics

    def embedded(self, images: Tensor) -> Tensor:
        """Points `(n, D)`, float32, of network input `(n, 3, h, w)`."""
        with autocast(self.device, self.precision):
            points = self.method.embed(images)
        return points.float()

    def scoring(self) -> AbstractContextManager[object]:
        """The context in which scores are computed."""
        if self.method.low_precision_scores:
            return autocast(self.device, self.precision)
        return nullcontext()

    @torch.no_grad()
    def test(self, store: ImageStore, episodes: Episodes, label: str | None = None) -> Results:
        """Accuracies in [0, 1] and losses of all episodes; `label` shows a progress bar.

        Raises:
            DegenerateFeaturesError: if scores are not finite.
        """
        self._set_mode()
        return Results.of(self._scores(store, episodes, label))

    def _scores(
        self, store: ImageStore, episodes: Episodes, label: str | None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits `(episodes, queries, way)` and classes `(episodes, queries)` of some episodes."""
        way, shot = episodes.support.shape[1:]
        rows, labels = episodes.images(), torch.from_numpy(episodes.query_labels)
        points = None if self.batch_statistics else self._all_points(store, episodes)
        images = episodes.unique_image_indices()
        size = 1 if self.batch_statistics else self.method.episodes_at_once
        for start in tqdm(
            range(0, len(rows), size), label, unit="batch", disable=None if label else True
        ):
            batch_rows = rows[start : start + size]
            episode_points = (
                self._episode_points(store, batch_rows, way * shot)
                if points is None
                else points[torch.from_numpy(np.searchsorted(images, batch_rows)).to(self.device)]
            )
            with self.scoring():
                unlabeled = episodes.unlabeled_count
                batch = EpisodeBatch(
                    episode_points,
                    way,
                    shot,
                    labels.shape[1],
                    numbers=torch.arange(start, start + len(batch_rows)),
                    unlabeled=unlabeled,
                )
                logits = self.method.scores(batch).float().cpu()
            if not logits.isfinite().all():
                raise DegenerateFeaturesError("the scores are not finite")
            yield logits, labels[start : start + size]

    def _set_mode(self) -> None:
        """No dropout; BatchNorm takes the statistics of a batch if the test asks for it."""
        self.method.eval()
        for module in self.method.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                module.train(self.batch_statistics)

    def _images(self, store: ImageStore, rows: np.ndarray) -> Tensor:
        return self.augmenter.eval_transform(to_device(store.pixels(rows), self.device))

    def _all_points(self, store: ImageStore, episodes: Episodes) -> Tensor:
        rows = episodes.unique_image_indices()
        points = None
        for start in range(0, len(rows), BATCH):
            part = self.embedded(self._images(store, rows[start : start + BATCH]))
            if points is None:  # at once, as maps of all images may take gigabytes
                points = part.new_empty(len(rows), part.shape[1])
            points[start : start + len(part)] = part
        assert points is not None
        return points

    def _episode_points(self, store: ImageStore, rows: np.ndarray, labeled: int) -> Tensor:
        """Points `(E, N, D)`, each episode's support and its other images in a batch of its own."""
        points = []
        for part in rows:
            images = self._images(store, part)
            support, queries = self.embedded(images[:labeled]), self.embedded(images[labeled:])
            points.append(torch.cat([support, queries]))
        return torch.stack(points)


def start_from(
    path: Path, backbone: BackboneConfig, store: ImageStore, device: torch.device
) -> Pretrained:
    """What a checkpoint of a pretraining holds.

    Raises:
        UserError: if it was trained with another number of classes than the store has in its base,
            with or without its validation classes.
    """
    checkpoint = Checkpoint.load(path, backbone)
    network, head = checkpoint.network(device), checkpoint.class_head
    base_weights = head.get("weight", torch.empty(0, network.feature_size))
    classes = len(store.class_indices("base"))
    with_validation = len(store.class_indices("base", "val"))
    if len(base_weights) not in (0, classes, with_validation):
        raise UserError(
            f"{checkpoint.name} knows {len(base_weights)} classes, data set {store.name} has "
            f"{classes} base classes, {with_validation} with those of validation",
            REMEDY,
        )
    return Pretrained(network, base_weights, float(head.get("scale", 1)))


def _untrained_start(backbone: BackboneConfig, store: ImageStore) -> Pretrained:
    """What a checkpoint of a method fills that started from a pretrained network."""
    network = build(backbone)
    classes = len(store.class_indices("base"))
    return Pretrained(network, torch.zeros(classes, network.feature_size))


def run(
    config: MetaTestConfig,
    data: Path,
    weights: Path,
    episodes: Path,
    out: Path,
    require_gpu: bool = False,
) -> None:
    """The stage `meta-test`: a CSV with the columns episode, accuracy.

    require_gpu: whether a method that each episode tunes needs a GPU.

    Raises:
        UserError: for unlabeled images that the method does not take.
    """
    provenance = Provenance("meta-test", config, [data / "store.json", weights, episodes])
    store = ImageStore.open(data)
    tested = Episodes.drawn_from(episodes, store.labels, data).first(config.episodes)
    name = str(config.method["name"])
    kind = METHODS[name]
    device = choose_device(require_gpu and not kind.trained)
    set_precision(config.precision)
    pixels = crop_size(store.images.shape[1], config.view)
    start = None
    if not kind.trained:
        start = start_from(weights, config.backbone, store, device)
    elif kind.pretrained:
        start = _untrained_start(config.backbone, store)
    method = build_method(config.method, pixels, config.way, f"data set {store.name}", start)
    if kind.trained:
        Checkpoint.load(weights, config.backbone).fill(method)
    place(method, device)
    has_unlabeled = tested.unlabeled.shape[2] > 0
    if has_unlabeled and not method.unlabeled:
        raise UserError(
            f"{episodes} has unlabeled images, which {name} does not take",
            "choose a protocol without them",
        )
    tester = EpisodicTester(method, config.view, config.precision, device, config.batch_statistics)
    results = tester.test(store, tested, name)
    write_scores(out, {"accuracy": results.accuracies})
    transductive = method.transductive or config.batch_statistics
    letters = {"T": transductive, "S": method.unlabeled}
    provenance.write(
        out,
        episodes=len(tested),
        assumes=" ".join(letter for letter, holds in letters.items() if holds),
        **describe(device, config.precision),
    )
