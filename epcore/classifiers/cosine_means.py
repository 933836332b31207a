"""Cosine similarity to class means (Gidaris et al. 2019)."""

from dataclasses import replace

from pydantic import Field, PositiveFloat
from torch import Tensor
from torch.nn import functional

from epcore.backbones.cosine import cosine_logits
from epcore.classifiers.base import EpisodeClassifier
from epcore.classifiers.episodes import EpisodeBatch


class CosineMeans(EpisodeClassifier):
    """`scale` times the cosine between a query and a class's mean of support of unit length.

    How networks with a cosine classifier are tested; the scale is that of the loss in training.

    Spyros Gidaris, Andrei Bursuc, Nikos Komodakis, Patrick Pérez, Matthieu Cord: Boosting
    Few-Shot Visual Learning with Self-Supervision, ICCV 2019, https://arxiv.org/abs/1906.05186.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, CosineMeans
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(CosineMeans()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    scale: PositiveFloat = Field(
        default=10.0, description="of the cosines (authors' code); it changes no prediction"
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        unit = replace(episodes, points=functional.normalize(episodes.points, dim=-1))
        return cosine_logits(unit.query, unit.class_means, self.scale)
