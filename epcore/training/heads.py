"""The network of pretraining: a backbone with its heads."""

from functools import partial

from torch import nn

from epcore.backbones.base import Backbone
from epcore.backbones.cosine import CosineClassifier

ROTATIONS = 4


class PretrainingModel(nn.Module):
    """A backbone with a head over the base classes and one over the four rotations."""

    def __init__(self, backbone: Backbone, classes: int, heads: str) -> None:
        super().__init__()
        head = partial(CosineClassifier, scale=10) if heads == "cosine" else nn.Linear
        self.backbone = backbone
        self.class_head = head(backbone.feature_size, classes)
        self.rotation_head = head(backbone.feature_size, ROTATIONS)
