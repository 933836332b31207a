"""The prototypical classifier (Snell et al. 2017)."""

import math

from torch import Tensor

from epcore.classifiers import EpisodeBatch, EpisodeClassifier


class Prototypes(EpisodeClassifier):
    """Minus the squared distance to the mean of each class's support.

    It is divided by sqrt(D), as in the authors' first published code; that scales the loss and
    changes no prediction.
    """

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        support, size = episodes.support, episodes.points.shape[-1]
        by_class = support.reshape(*support.shape[:-2], episodes.way, episodes.shot, size)
        prototypes = by_class.mean(dim=-2)
        differences = episodes.query[..., :, None, :] - prototypes[..., None, :, :]
        logits: Tensor = -differences.square().sum(dim=-1) / math.sqrt(size)
        return logits
