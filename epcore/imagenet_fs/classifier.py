"""Stage 1: a network and a classifier of the base classes, perhaps one of rotations too."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.base import Backbone
from epcore.backbones.checkpoint import build
from epcore.backbones.cosine import CosineClassifier
from epcore.backbones.resnet import ResNet
from epcore.data.augment import Augmenter, crop_size
from epcore.data.device_images import to_device
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.imagenet_fs.classes import Subsets, check_pair
from epcore.imagenet_fs.config import ClassifierConfig, ClassifierTraining
from epcore.runtime.device import autocast, choose_device, place, set_precision
from epcore.training.loop import seed_of
from epcore.training.pretraining_loss import ROTATIONS
from epcore.training.session import Session
from epcore.vision import BasicBlock

BATCH = 256  # of validation
# Of fewer the last stage would see a single position: a network of the borders' padding alone. And
# the gradient of such a convolution is wrong in bfloat16 on CPUs (torch 2.13.0).
LEAST_PIXELS = 17


class RotationHead(nn.Module):
    """A cosine classifier of rotations, behind two residual blocks of its own (code of CC+Rot)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(BasicBlock(channels, channels) for _ in range(2)))
        for module in self.blocks.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
        self.classifier = CosineClassifier(channels, ROTATIONS, scale=10)


class ClassifierModel(nn.Module):
    """A backbone and the classifier of the base classes; that of rotations is optional."""

    def __init__(self, backbone: Backbone, classes: int, settings: ClassifierTraining) -> None:
        super().__init__()
        size = backbone.feature_size
        self.backbone = backbone
        self.class_head: nn.Module
        if settings.linear:
            self.class_head = nn.Linear(size, classes, bias=False)
        else:
            self.class_head = CosineClassifier(size, classes, settings.scale)
        self.rotations = RotationHead(size) if settings.rotation_weight else None


def gradient_penalty(features: Tensor, logits: Tensor, expected: Tensor) -> Tensor:
    """Squared norm of the gradient of a linear layer's mean cross-entropy, by its weights.

    `|| 1/n sum_i (p_i - y_i) x_i^T ||^2` over features x `(n, D)`, with probabilities p and one-hot
    classes y: Batch SGM (Hariharan and Girshick, ICCV 2017; losses.py of the authors' code).
    """
    errors = logits.softmax(dim=1) - functional.one_hot(expected, logits.shape[1])  # (n, C)
    return (errors.T @ features / len(features)).square().sum()


class ClassifierTask:
    """Cross-entropy over batches that draw a class uniformly, then one of its images.

    With a `rotation_weight` each image is turned by 0, 90, 180 and 270 degrees, after it was
    augmented. A second classifier learns which of them it is, and its cross-entropy over all four
    is added with this weight; the classes are learned from the image as it was. With a
    `gradient_weight` the `gradient_penalty` of the loss over classes is added with this weight.

    Validation is the top-1 accuracy among all base classes on the queries of the base classes
    that validation scores. Class uniform sampling is the authors' code's.
    """

    def __init__(
        self,
        config: ClassifierConfig,
        images: ImageStore,
        queries: ImageStore,
        device: torch.device,
    ) -> None:
        self.config, self.images, self.queries, self.device = config, images, queries, device
        self.settings = config.training
        copies = ROTATIONS if self.settings.rotation_weight else 1
        self.steps, self.images_per_step = self.settings.steps, self.settings.batch_size * copies
        pixels = crop_size(images.images.shape[1], config.view)
        if pixels < LEAST_PIXELS:
            raise UserError(
                f"data set {images.name}: a view of {pixels} pixels is too small for "
                f"{config.backbone.architecture}",
                f"give image_size or view at least {LEAST_PIXELS}",
            )
        subsets = Subsets.of(images, "val")
        self.first = np.searchsorted(images.labels, subsets.base)
        self.counts = np.searchsorted(images.labels, subsets.base, "right") - self.first
        scored = subsets.base[subsets.scored]
        self.rows = np.flatnonzero(np.isin(queries.labels, scored))
        self.expected = torch.from_numpy(np.searchsorted(subsets.base, queries.labels[self.rows]))
        torch.manual_seed(seed_of(config.seed, "imagenet-fs classifier", "weights"))
        backbone, classes = build(config.backbone), len(subsets.base)
        self.model = ClassifierModel(backbone, classes, self.settings)
        place(self.model, device)
        self.augmenter = Augmenter(self.settings.augmentation, config.view)

    def sample(self, epoch: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Store rows and base classes of a step's images, each `(batch_size,)`."""
        rng = np.random.default_rng(
            seed_of(self.config.seed, "imagenet-fs classifier", epoch, step)
        )
        classes = rng.integers(len(self.counts), size=self.settings.batch_size)
        return self.first[classes] + rng.integers(self.counts[classes]), classes

    def seed(self, epoch: int) -> int:
        return seed_of(self.config.seed, "imagenet-fs augmentation", epoch)

    def losses(self, epoch: int, start: int, generator: torch.Generator) -> Iterator[Tensor]:
        for step in range(start, self.steps):
            rows, classes = self.sample(epoch, step)
            images = to_device(self.images.pixels(rows), self.device)
            batch = self.augmenter.pretrain_transform(images, generator)
            expected = torch.from_numpy(classes).to(self.device)
            if self.model.rotations is None:
                yield self._class_loss(self._features(batch), expected)
            else:
                yield self._loss_with_rotations(batch, expected, self.model.rotations)

    def _loss_with_rotations(self, batch: Tensor, expected: Tensor, head: RotationHead) -> Tensor:
        """The loss over classes of images `(n, 3, h, w)`, and over rotations of all their turns."""
        backbone = self.model.backbone
        assert isinstance(backbone, ResNet)  # of WITH_MAPS
        images = torch.cat([batch.rot90(turns, (2, 3)) for turns in range(ROTATIONS)])
        with autocast(self.device, self.config.precision):
            maps = backbone.maps(images)
            rotation_features = head.blocks(maps).mean(dim=(-2, -1)).float()
        features = maps[: len(batch)].float().mean(dim=(-2, -1))
        turns = torch.arange(ROTATIONS, device=self.device).repeat_interleave(len(batch))
        rotation_loss = functional.cross_entropy(head.classifier(rotation_features), turns)
        class_loss = self._class_loss(features, expected)
        return class_loss + self.settings.rotation_weight * rotation_loss

    def _class_loss(self, features: Tensor, expected: Tensor) -> Tensor:
        logits, weight = self.model.class_head(features), self.settings.gradient_weight
        loss = functional.cross_entropy(logits, expected)
        return loss + weight * gradient_penalty(features, logits, expected) if weight else loss

    def _features(self, batch: Tensor) -> Tensor:
        with autocast(self.device, self.config.precision):
            features: Tensor = self.model.backbone(batch)
        return features.float()

    @torch.no_grad()
    def validate(self) -> tuple[float, float]:
        self.model.eval()
        logits = []
        for start in range(0, len(self.rows), BATCH):
            images = to_device(self.queries.pixels(self.rows[start : start + BATCH]), self.device)
            features = self._features(self.augmenter.eval_transform(images))
            logits.append(self.model.class_head(features).cpu())
        scores = torch.cat(logits).double()
        accuracy = (scores.argmax(dim=1) == self.expected).double().mean()
        return float(accuracy), float(functional.cross_entropy(scores, self.expected))


def run(config: ClassifierConfig, data: Path, queries: Path, out: Path, require_gpu: bool) -> None:
    """The stage `imagenet-fs-classifier`: a checkpoint, its curve and its meta."""
    device = choose_device(require_gpu)
    set_precision(config.precision)
    session = Session(
        "imagenet-fs-classifier", config, [data / "store.json", queries / "store.json"], out
    )
    stores = ImageStore.open(data), ImageStore.open(queries)
    check_pair(*stores, exemplars=1)
    task = ClassifierTask(config, *stores, device)
    counted = nn.ModuleList([task.model.backbone, task.model.class_head])
    session.train(task, "classifier", counted)
