"""Phase two: episodes of the base classes (paper, section 3.4)."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.base import Backbone
from epcore.backbones.checkpoint import REMEDY, Checkpoint, build
from epcore.classifiers.episodes import EpisodeBatch
from epcore.data.augment import Augmenter
from epcore.data.device_images import DeviceImages
from epcore.data.episodes import Episodes, pool_of, sample
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.evaluation.inference import Inference
from epcore.runtime.device import autocast, choose_device, place, set_precision
from epcore.training.config import FinetuneConfig
from epcore.training.loop import seed_of
from epcore.training.session import Session, Validator, labels_among


class FinetuningModel(nn.Module):
    """The pretrained backbone and class head; the rotation head is left behind."""

    def __init__(self, backbone: Backbone, classes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.class_head = nn.Linear(backbone.feature_size, classes)


class FinetuningTask:
    """L_p over the queries + class_weight * L_c over support and queries, one episode a step."""

    def __init__(
        self,
        config: FinetuneConfig,
        store: ImageStore,
        episodes: Episodes,
        checkpoint: Checkpoint,
        device: torch.device,
    ) -> None:
        self.config, self.device = config, device
        self.settings = config.finetuning
        self.steps = self.settings.episodes_per_epoch
        self.images_per_step = self.settings.way * (config.shot + self.settings.queries)
        self.labels, self.base = labels_among(store, "base"), pool_of(store, "base")
        self.device_images = DeviceImages(store, store.image_indices("base"), device)
        classes = len(store.class_indices("base"))
        if checkpoint.cosine_head:
            raise UserError(
                f"{checkpoint.name} has `heads: cosine`, and fine-tuning has a linear layer",
                "give a checkpoint with linear heads",
            )
        trained = checkpoint.class_head.get("bias", torch.empty(0)).numel()
        if trained != classes:
            raise UserError(
                f"{checkpoint.name} knows {trained} classes, data set {store.name} has "
                f"{classes} base classes",
                REMEDY,
            )
        self.model = FinetuningModel(build(config.backbone), classes)
        checkpoint.fill(self.model.backbone, self.model.class_head)
        place(self.model, device)
        self.augmenter = Augmenter(config.augmentation, config.view)
        self.inference = Inference(config.propagation)
        self.inference.check_trainable()
        self.validator = Validator(store, episodes, config, device)

    def seed(self, epoch: int) -> int:
        return seed_of(self.config.seed, "finetune", self.config.shot, epoch)

    def losses(self, epoch: int, start: int, generator: torch.Generator) -> Iterator[Tensor]:
        way, shot, queries = self.settings.way, self.config.shot, self.settings.queries
        episodes = sample(self.base, way, shot, queries, self.steps, self.seed(epoch))
        for rows in episodes.images()[start:]:
            images = self.augmenter.finetune_transform(self.device_images.batch(rows), generator)
            yield self.loss(images, self.labels[rows])

    def loss(self, batch: Tensor, labels: Tensor) -> Tensor:
        """The loss of an episode's images `(way * (shot + queries), 3, h, w)` and base classes.

        The class head sees the features (authors' code) or the embeddings (text).
        """
        settings = self.settings
        with autocast(self.device, self.config.precision):
            features = self.model.backbone(batch)
        features = features.float()
        embeddings = self.inference.propagate(features)
        classes = torch.arange(settings.way, device=self.device)
        expected = classes.repeat_interleave(settings.queries)
        episode = EpisodeBatch(embeddings, settings.way, self.config.shot, len(expected))
        logits = self.inference.classifier.scores(episode)
        loss = functional.cross_entropy(logits, expected)
        if settings.class_weight > 0:
            inputs = features if settings.class_input == "features" else embeddings
            class_loss = functional.cross_entropy(
                self.model.class_head(inputs), labels.to(self.device)
            )
            loss = loss + settings.class_weight * class_loss
        return loss

    def validate(self) -> tuple[float, float]:
        return self.validator(self.model.backbone)


def run(
    config: FinetuneConfig,
    data: Path,
    episodes: Path,
    checkpoint: Path,
    out: Path,
    require_gpu: bool,
) -> None:
    """The stage `finetune`: a checkpoint, its curve and its meta."""
    device = choose_device(require_gpu)
    set_precision(config.precision)
    session = Session("finetune", config, [data / "store.json", episodes, checkpoint], out)
    store = ImageStore.open(data)
    validation = Episodes.drawn_from(episodes, store.labels, data)
    pretrained = Checkpoint.load(checkpoint, config.backbone)
    task = FinetuningTask(config, store, validation, pretrained, device)
    facts = {"processes": 1, "image_size": store.images.shape[1]}
    session.train(task, f"finetune {config.shot}-shot", task.model.backbone, **facts)
