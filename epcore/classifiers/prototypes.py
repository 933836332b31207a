"""The prototypical classifier (Snell et al. 2017)."""

import math

from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier
from epcore.classifiers.episodes import EpisodeBatch


class Prototypes(EpisodeClassifier):
    """Minus the squared distance to the mean of each class's support.

    It is divided by sqrt(D), as in the authors' first published code; that scales the loss and
    changes no prediction.
    """

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        differences = episodes.query[..., :, None, :] - episodes.class_means[..., None, :, :]
        logits: Tensor = -differences.square().sum(dim=-1) / math.sqrt(episodes.points.shape[-1])
        return logits
