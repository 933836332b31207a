"""Phase one: classes and rotations of the base images (paper, section 3.4)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones import Backbone
from epcore.checkpoint import build
from epcore.data.augment import ROTATIONS, Augmenter
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.device import autocast, choose_device, place
from epcore.errors import UserError
from epcore.evaluation.propagation_classifier import PropagationClassifier
from epcore.plan.stages import PretrainStage
from epcore.training.loop import fit, seed_of
from epcore.training.session import Inputs, Session, Validator, base_labels


class PretrainingModel(nn.Module):
    """A backbone with a linear head over the base classes and one over the four rotations."""

    def __init__(self, backbone: Backbone, classes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.class_head = nn.Linear(backbone.feature_size, classes)
        self.rotation_head = nn.Linear(backbone.feature_size, ROTATIONS)


class PretrainingTask:
    """L_c + rotation_weight * L_r over batches of images, each in four rotations."""

    def __init__(
        self, stage: PretrainStage, store: ImageStore, episodes: Episodes, device: torch.device
    ) -> None:
        self.stage, self.store, self.device = stage, store, device
        self.settings = stage.pretraining
        self.rows = store.image_indices("base")
        if len(self.rows) < self.settings.batch_size:
            raise UserError(
                f"data set {store.name}: its {len(self.rows)} base images do not fill one batch; "
                f"set pretraining.batch_size to {len(self.rows)} or less"
            )
        self.labels = base_labels(store)
        torch.manual_seed(seed_of(stage.seed, "pretrain", "weights"))
        self.model = PretrainingModel(build(stage.backbone), len(store.class_indices("base")))
        place(self.model, device)
        self.augmenter = Augmenter(stage.augmentation, stage.view)
        self.classifier = PropagationClassifier(stage.propagation)
        self.validator = Validator(store, episodes, self.classifier, stage, device)

    @property
    def steps(self) -> int:
        """Whole batches of an epoch; the rest of the images is left out (A39)."""
        return len(self.rows) // self.settings.batch_size

    @property
    def images_per_step(self) -> int:
        return ROTATIONS * self.settings.batch_size

    def seed(self, epoch: int) -> int:
        return seed_of(self.stage.seed, "pretrain", epoch)

    def losses(self, epoch: int, start: int, generator: torch.Generator) -> Iterator[Tensor]:
        order = np.random.default_rng(self.seed(epoch)).permutation(self.rows)
        size = self.settings.batch_size
        for step in range(start, self.steps):
            rows = order[step * size : (step + 1) * size]
            images = torch.from_numpy(self.store.pixels(rows)).to(self.device)
            yield self.loss(self.augmenter.rotated(images, generator), self.labels[rows])

    def loss(self, batch: Tensor, labels: Tensor) -> Tensor:
        """Of images `(4 * n, 3, h, w)`, all rotations of n images, and their classes `(n,)`.

        The class head sees embeddings propagated over the whole batch, all rotations together
        (A26); the rotation head sees the features (authors' code) or the embeddings (text).
        """
        with autocast(self.device, self.stage.precision):
            features = self.model.backbone(batch)
        features = features.float()
        embeddings = self.classifier.embeddings(features)
        classes = labels.to(self.device).repeat(ROTATIONS)
        loss = functional.cross_entropy(self.model.class_head(embeddings), classes)
        if self.settings.rotation_weight > 0:
            turns = torch.arange(ROTATIONS, device=self.device).repeat_interleave(len(labels))
            seen = features if self.settings.rotation_input == "features" else embeddings
            turned = functional.cross_entropy(self.model.rotation_head(seen), turns)
            loss = loss + self.settings.rotation_weight * turned
        return loss

    def validate(self) -> tuple[float, float]:
        return self.validator(self.model.backbone)


def run(stage: PretrainStage, data: Path, episodes: Path, out: Path, require_gpu: bool) -> None:
    """The stage `pretrain`: a checkpoint, its curve and its meta."""
    device = choose_device(require_gpu)
    session = Session("pretrain", stage, Inputs(data, episodes), out)
    task = PretrainingTask(stage, session.store, session.episodes, device)
    outcome = fit(task, stage.pretraining, stage.seed, session.state, "pretrain")
    session.finish(outcome, device)
