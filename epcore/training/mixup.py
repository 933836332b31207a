"""Training on mixtures of maps and on rotations in turn (S2M2_R, Mangla et al. 2020)."""

import torch
from torch import Tensor, nn
from torch.distributions import Beta
from torch.nn import functional

from epcore.runtime.device import autocast
from epcore.training.pretraining_loss import PretrainingLoss


class MixupLoss(nn.Module):
    """The loss of n images and of a quarter of them in four rotations, `(n + 4 (n // 4), 3, h, w)`.

    The n images, or their maps behind one of the network's stages, are mixed with those of other
    images of the batch: `s x_i + (1 - s) x_j`, whose loss is that share of the cross-entropy of
    each class (manifold mixup, Verma et al. 2019). Place, partners and s, one for the batch, are
    drawn anew in each step. Half of the usual loss of the rotated images is added. As in the
    authors' code BatchNorm sees both parts one by one.

    Args:
        rotated: the usual loss, whose network and settings both parts have.
        alpha: s is drawn from Beta(alpha, alpha).
    """

    def __init__(self, rotated: PretrainingLoss, alpha: float) -> None:
        super().__init__()
        self.rotated, self.model = rotated, rotated.model
        self.share = Beta(alpha, alpha)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        count, classes = len(labels), labels.to(self.rotated.device)
        share, partners = float(self.share.sample()), torch.randperm(count)
        place = int(torch.randint(len(self.model.backbone.stages) + 1, ()))
        features = self._mixed(images[:count], share, partners, place)
        logits = self.model.class_head(self.rotated.propagate(features))
        loss = share * functional.cross_entropy(logits, classes)
        loss = loss + (1 - share) * functional.cross_entropy(logits, classes[partners])
        if len(images) > count:
            loss = loss + 0.5 * self.rotated(images[count:], labels[: count // 4])
        return loss

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
        with autocast(self.rotated.device, self.rotated.config.precision):
            features: Tensor = self.model.backbone(images)
        return features.float()
