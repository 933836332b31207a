"""The prototypical classifier (Snell et al. 2017)."""

import math

from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier
from epcore.classifiers.episodes import EpisodeBatch


class Prototypes(EpisodeClassifier):
    """Minus the squared distance to the mean of each class's support.

    It is divided by sqrt(D), as in EPNet's code; that scales the loss and changes no prediction.

    Jake Snell, Kevin Swersky, Richard Zemel: Prototypical Networks for Few-shot Learning, NIPS
    2017, https://arxiv.org/abs/1703.05175.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, Prototypes
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(Prototypes()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        differences = episodes.query[..., :, None, :] - episodes.class_means[..., None, :, :]
        logits: Tensor = -differences.square().sum(dim=-1) / math.sqrt(episodes.points.shape[-1])
        return logits
