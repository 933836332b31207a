"""The network of pretraining and its loss over classes and rotations (paper, section 3.4)."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.base import Backbone
from epcore.backbones.cosine import CosineClassifier
from epcore.evaluation.inference import Inference
from epcore.runtime.device import autocast
from epcore.training.config import PretrainConfig
from epcore.training.process_group import ProcessGroup

ROTATIONS = 4


class PretrainingModel(nn.Module):
    """A backbone with a head over the base classes and one over the four rotations."""

    def __init__(self, backbone: Backbone, classes: int, heads: str) -> None:
        super().__init__()
        head = partial(CosineClassifier, scale=10) if heads == "cosine" else nn.Linear
        self.backbone = backbone
        self.class_head = head(backbone.feature_size, classes)
        self.rotation_head = head(backbone.feature_size, ROTATIONS)


class PretrainingLoss(nn.Module):
    """The loss of images `(4 * n, 3, h, w)`, all rotations of n images of classes `(n,)`.

    Without rotated copies the images are `(n, 3, h, w)`. The class head sees embeddings propagated
    over the whole batch, all rotations together (A26); the rotation head sees the features
    (authors' code) or the embeddings (text). A process of a team is given its share of the images,
    and the classes of all.
    """

    def __init__(
        self,
        model: PretrainingModel,
        config: PretrainConfig,
        device: torch.device,
        team: ProcessGroup,
    ) -> None:
        super().__init__()
        self.model, self.config, self.device, self.team = model, config, device, team
        self.propagate = Inference(config.propagation).propagate

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        settings = self.config.pretraining
        with autocast(self.device, self.config.precision):
            features = self.model.backbone(images)
        features = self.team.gathered(features.float())
        embeddings = self.propagate(features)
        classes = labels.to(self.device).repeat(len(features) // len(labels))
        loss = functional.cross_entropy(self.model.class_head(embeddings), classes)
        if settings.rotation_weight > 0:
            turns = torch.arange(ROTATIONS, device=self.device).repeat_interleave(len(labels))
            rotation_inputs = features if settings.rotation_input == "features" else embeddings
            turned = functional.cross_entropy(self.model.rotation_head(rotation_inputs), turns)
            loss = loss + settings.rotation_weight * turned
        return loss
