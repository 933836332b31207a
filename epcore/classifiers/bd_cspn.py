"""Prototypes rectified by the queries (BD-CSPN, Liu et al. 2020)."""

from typing import ClassVar

from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from epcore.backbones.cosine import cosine_logits
from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.rectification import (
    SCALE,
    Weighting,
    rectified_means,
    shifted_queries,
)


class BDCSPN(EpisodeClassifier):
    """Cosine with class means that take in the queries.

    All queries are moved by the mean of the support minus their own mean. Each then joins the class
    of the nearest mean by cosine; the new mean of a class weighs its members x, which are its
    support and its queries, by the softmax over the members of `scale * cos(x, old mean)`. Scores
    are `scale * cos` with the new means. The move takes it that queries are spread over the classes
    as the support is.

    Jinlu Liu, Liang Song, Yongqiang Qin: Prototype Rectification for Few-Shot Learning, ECCV 2020,
    https://arxiv.org/abs/1911.10713. There is no official code; easyfsl's weighs members the same.
    The codes of LaplacianShot and alpha-TIM weigh a member by the softmax over the classes, assign
    the support anew too, where it keeps its labels here, and take the nearest new mean by Euclidean
    distance.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, BDCSPN
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> method = BDCSPN(preprocessing=["unit"])  # the default takes a base mean
        >>> model = FewShotClassifier(method).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, balanced=True)

    preprocessing: tuple[Step, ...] = ("center-base", "unit")
    scale: PositiveFloat = Field(default=SCALE, description="the paper's epsilon")
    weighting: Weighting = Field(
        default="members",
        description="how members of a class weigh in its mean: by the softmax over the members "
        "(the paper), or over the classes (the codes of LaplacianShot and alpha-TIM)",
    )
    confident: PositiveInt | None = Field(
        default=None,
        description="how many queries join a class at most, the surest first, as in the paper; "
        "unset: all, as in the reimplementations",
    )

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        moved = shifted_queries(episodes)
        means = rectified_means(episodes, moved, self.weighting, self.scale, self.confident)
        return cosine_logits(moved, means, self.scale)
