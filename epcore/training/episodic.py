"""Training of a compared method on episodes of base classes."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from epcore.backbones.checkpoint import Checkpoint
from epcore.backbones.config import BackboneConfig
from epcore.classifiers.episodes import EpisodeBatch
from epcore.data.augment import Augmenter, crop_size
from epcore.data.device_images import DeviceImages
from epcore.data.episodes import Episodes, pool_of, sample
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.evaluation.meta_test import EpisodicTester, start_from
from epcore.methods import build_method
from epcore.methods.base import Pretrained
from epcore.runtime.device import autocast, choose_device, place, set_precision
from epcore.training.config import MetaTrainConfig
from epcore.training.loop import seed_of
from epcore.training.session import Session, labels_among


class EpisodicTask:
    """The method's own loss, over one or more episodes a step."""

    def __init__(
        self,
        config: MetaTrainConfig,
        store: ImageStore,
        episodes: Episodes,
        device: torch.device,
        start: Pretrained | None = None,
    ) -> None:
        self.config, self.device = config, device
        self.settings = config.training
        self.way, self.shot, self.queries = config.episode
        self.steps = config.training.steps
        self.unlabeled = config.training.unlabeled or 0
        images_per_class = self.shot + self.queries + self.unlabeled
        self.images_per_step = config.training.tasks * self.way * images_per_class
        self.base = pool_of(store, "base")
        self.images = DeviceImages(store, store.image_indices("base"), device)
        torch.manual_seed(seed_of(config.seed, "meta-train", "weights"))
        pixels = crop_size(store.images.shape[1], config.view)
        location = f"data set {store.name}"
        self.method = build_method(config.method, pixels, self.way, location, start)
        if config.training.tasks < self.method.least_tasks:
            raise UserError(
                f"{config.method['name']}: BatchNorm sees one image of each episode of a "
                f"step, and {config.training.tasks} is too few",
                f"set `tasks` of its training to {self.method.least_tasks} or more",
            )
        self.model: nn.Module = self.method
        self.base_head: nn.Linear | None = None
        if self.method.base_features:
            classes = len(store.class_indices("base"))
            self.base_head = nn.Linear(self.method.base_features, classes)
            self.model = nn.ModuleDict({"method": self.method, "base_head": self.base_head})
        place(self.model, device)
        self.base_labels = labels_among(store, "base").to(device)
        self.tester = EpisodicTester(self.method, config.view, config.precision, device)
        self.store, self.episodes = store, episodes
        self.augmenter = Augmenter(self.settings.augmentation, config.view)

    def seed(self, epoch: int) -> int:
        return seed_of(self.config.seed, "meta-train", self.config.shot, epoch)

    def losses(self, epoch: int, start: int, generator: torch.Generator) -> Iterator[Tensor]:
        way, shot, queries, tasks = self.way, self.shot, self.queries, self.config.training.tasks
        count = self.steps * tasks
        seed, unlabeled = self.seed(epoch), self.unlabeled
        episodes = sample(self.base, way, shot, queries, count, seed, unlabeled=unlabeled)
        rows = episodes.images().reshape(self.steps, -1)
        for step in range(start, self.steps):
            images = self.augmenter.pretrain_transform(self.images.batch(rows[step]), generator)
            with autocast(self.device, self.config.precision):
                images = images.reshape(tasks, -1, *images.shape[1:])
                points = self.method.embed_step(images, way * shot)
            batch = EpisodeBatch(
                points.float(), way, shot, way * queries, unlabeled=episodes.unlabeled_count
            )
            with self.tester.scoring():
                yield self._loss(batch, episodes.support[step * tasks : (step + 1) * tasks])

    def _loss(self, batch: EpisodeBatch, support: np.ndarray) -> Tensor:
        """The loss of a step's episodes, whose support is in these rows `(T, way, shot)`."""
        classes = self.base_labels[torch.from_numpy(support[:, :, 0])]
        if self.base_head is None:
            return self.method.loss_among_base(batch, classes)
        return self.method.joint_loss(batch, self.base_head, classes)

    def validate(self) -> tuple[float, float]:
        results = self.tester.test(self.store, self.episodes)
        return float(results.accuracies.mean()), float(results.losses.mean())


def run(
    config: MetaTrainConfig,
    data: Path,
    episodes: Path,
    out: Path,
    require_gpu: bool,
    pretrained: Path | None = None,
) -> None:
    """The stage `meta-train`: a checkpoint, its curve and its meta."""
    device = choose_device(require_gpu)
    set_precision(config.precision)
    inputs = [data / "store.json", episodes, *([pretrained] if pretrained else [])]
    session = Session("meta-train", config, inputs, out)
    store = ImageStore.open(data)
    validation = Episodes.drawn_from(episodes, store.labels, data)
    start = start_from(pretrained, config.backbone, store, device) if pretrained else None
    task = EpisodicTask(config, store, validation, device, start)
    label = f"{config.method['name']} {config.shot}-shot"
    session.train(task, label, task.method, _checkpoint, processes=1)


def _checkpoint(backbone: BackboneConfig, weights: Mapping[str, Tensor]) -> Checkpoint:
    """The weights of the method, without those of a head over the base classes."""
    own = {name: weight for name, weight in weights.items() if not name.startswith("base_head.")}
    return Checkpoint(backbone, {name.removeprefix("method."): w for name, w in own.items()})
