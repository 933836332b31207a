"""Phase one: classes and rotations of the base images (paper, section 3.4)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from epcore.backbones.checkpoint import build
from epcore.data.augment import Augmenter
from epcore.data.config import Split
from epcore.data.device_images import DeviceImages
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.files import add_energy
from epcore.runtime.device import choose_device, place, set_precision
from epcore.training.config import PretrainConfig
from epcore.training.loop import seed_of
from epcore.training.mixup import MixupLoss
from epcore.training.pretraining_loss import ROTATIONS, PretrainingLoss, PretrainingModel
from epcore.training.process_group import ALONE, ProcessGroup, launch
from epcore.training.session import Session, Validator, labels_among


class PretrainingTask:
    """L_c + rotation_weight * L_r over batches of images, each in four rotations or as it is."""

    def __init__(
        self,
        config: PretrainConfig,
        store: ImageStore,
        episodes: Episodes,
        device: torch.device,
        team: ProcessGroup = ALONE,
    ) -> None:
        self.config, self.device, self.team = config, device, team
        self.settings = config.pretraining
        splits: tuple[Split, ...] = ("base", "val") if self.settings.with_validation else ("base",)
        self.rows = store.image_indices(*splits)
        if len(self.rows) < self.settings.batch_size:
            raise UserError(
                f"data set {store.name}: its {len(self.rows)} base images do not fill one batch",
                f"set pretraining.batch_size to {len(self.rows)} or less",
            )
        # Whole batches of an epoch; the rest of the images is left out, as in the authors' code.
        self.steps = len(self.rows) // self.settings.batch_size
        self.images_per_step = self.settings.images_per_step
        if self.settings.mixup and team.size > 1:
            raise UserError(
                "mixup is trained on one GPU, because images are mixed with others of the batch",
                "set resources.gpus of the scale to 1",
            )
        if self.images_per_step % team.size:
            raise UserError(
                f"{team.size} GPUs cannot share the {self.images_per_step} images of a batch "
                f"(each in {self.settings.copies} rotations) evenly",
                "change resources.gpus or pretraining.batch_size",
            )
        self.labels = labels_among(store, *splits)
        self.device_images = DeviceImages(store, self.rows, device)
        torch.manual_seed(seed_of(config.seed, "pretrain", "weights"))
        self.model = PretrainingModel(
            build(config.backbone), len(store.class_indices(*splits)), self.settings.heads
        )
        team.synchronize(self.model)
        place(self.model, device)
        self.augmenter = Augmenter(config.augmentation, config.view)
        loss = PretrainingLoss(self.model, config, device, team)
        self.loss: nn.Module = MixupLoss(loss, self.settings.mixup) if self.settings.mixup else loss
        self.loss = team.parallel(self.loss, all_weights_used=self.settings.rotation_weight > 0)
        self.validator = Validator(store, episodes, config, device)

    def seed(self, epoch: int) -> int:
        return seed_of(self.config.seed, "pretrain", epoch)

    def losses(self, epoch: int, start: int, generator: torch.Generator) -> Iterator[Tensor]:
        order = np.random.default_rng(self.seed(epoch)).permutation(self.rows)
        size = self.settings.batch_size
        for step in range(start, self.steps):
            rows = order[step * size : (step + 1) * size]
            # All of a team augment the whole batch, so that each image looks as it would alone.
            images = self.device_images.batch(rows)
            batch = self.augmenter.pretrain_transform(images, generator, self.settings.copies)
            if self.settings.rotated_quarter:
                quarter = images[: self.settings.rotated_quarter]
                turned = self.augmenter.pretrain_transform(quarter, generator, ROTATIONS)
                batch = torch.cat([batch, turned])
            if self.team.size > 1:
                # Dropout: other masks in each process, the same ones after a resume.
                mask = ("pretrain", epoch, step, "dropout", self.team.rank)
                torch.manual_seed(seed_of(self.config.seed, *mask))
            yield self.loss(self.team.share(batch), self.labels[rows])

    def validate(self) -> tuple[float, float]:
        return self.team.of_first(lambda: self.validator(self.model.backbone))


def run(
    config: PretrainConfig, data: Path, episodes: Path, out: Path, require_gpu: bool, gpus: int = 1
) -> None:
    """The stage `pretrain`: a checkpoint, its curve and its meta; on `gpus` GPUs together.

    Raises:
        UserError: if more than one GPU is asked for and there are not as many.
    """
    choose_device(require_gpu)
    if gpus > 1:
        if gpus > torch.cuda.device_count():
            raise UserError(
                f"{gpus} GPUs are asked for, here are {torch.cuda.device_count()}",
                "lower resources.gpus of the scale",
            )
        launch(gpus, train, config, data, episodes, out)
        add_energy(out)
    else:
        train(ALONE, config, data, episodes, out)


def train(
    team: ProcessGroup, config: PretrainConfig, data: Path, episodes: Path, out: Path
) -> None:
    """What each process of a team does; the first one writes."""
    device = team.device()
    set_precision(config.precision)
    session = Session("pretrain", config, [data / "store.json", episodes], out)
    store = ImageStore.open(data)
    validation = Episodes.drawn_from(episodes, store.labels, data)
    task = PretrainingTask(config, store, validation, device, team)
    facts = {"processes": team.size, "image_size": store.images.shape[1]}
    session.train(task, "pretrain", task.model.backbone, team=team, **facts)
