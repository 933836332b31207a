"""Training on mixtures of maps and on rotations in turn (S2M2_R, Mangla et al. 2020)."""

import torch
from torch import Tensor, nn
from torch.distributions import Beta
from torch.nn import functional

from epcore.runtime.device import autocast
from epcore.training.config import PretrainConfig
from epcore.training.heads import ROTATIONS, PretrainingModel


class MixupLoss(nn.Module):
    """The loss of n images and of a quarter of them in four rotations, `(n + 4 (n // 4), 3, h, w)`.

    The n images, or their maps behind one of the network's stages, are mixed with those of other
    images of the batch: `s x_i + (1 - s) x_j`, whose loss is that share of the cross-entropy of
    each class (manifold mixup, Verma et al. 2019). Place, partners and s, one for the batch, are
    drawn anew in each step. The rotated images have the mean of the losses of class and rotation.
    As in the authors' code both parts are added, and BatchNorm sees them one by one.
    """

    def __init__(
        self, model: PretrainingModel, config: PretrainConfig, alpha: float, device: torch.device
    ) -> None:
        super().__init__()
        self.model, self.config, self.device = model, config, device
        self.share = Beta(alpha, alpha)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        count, classes = len(labels), labels.to(self.device)
        share, partners = float(self.share.sample()), torch.randperm(count)
        place = int(torch.randint(len(self.model.backbone.stages) + 1, ()))
        logits = self.model.class_head(self._mixed(images[:count], share, partners, place))
        loss = share * functional.cross_entropy(logits, classes)
        loss = loss + (1 - share) * functional.cross_entropy(logits, classes[partners])

        quarter = self.config.pretraining.rotated_quarter
        if quarter == 0:
            return loss
        turned = self._features(images[count:])
        turned_classes = classes[:quarter].repeat(ROTATIONS)
        turns = torch.arange(ROTATIONS, device=self.device).repeat_interleave(quarter)
        return loss + 0.5 * (
            functional.cross_entropy(self.model.class_head(turned), turned_classes)
            + functional.cross_entropy(self.model.rotation_head(turned), turns)
        )

    def _mixed(self, images: Tensor, share: float, partners: Tensor, place: int) -> Tensor:
        """Features of mixtures of the images (place 0) or of the maps behind a stage."""

        def mix(maps: Tensor) -> Tensor:
            return share * maps + (1 - share) * maps[partners.to(maps.device)]

        if place == 0:
            return self._features(mix(images))
        stage = self.model.backbone.stages[place - 1]
        handle = stage.register_forward_hook(lambda _module, _inputs, maps: mix(maps))
        try:
            return self._features(images)
        finally:
            handle.remove()

    def _features(self, images: Tensor) -> Tensor:
        with autocast(self.device, self.config.precision):
            features: Tensor = self.model.backbone(images)
        return features.float()
