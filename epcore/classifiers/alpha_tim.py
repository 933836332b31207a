"""Alpha-TIM, for queries that are not spread evenly over the classes (Veilleux et al. 2021)."""

from typing import Annotated, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.distances import centered
from epcore.classifiers.solvers.tim import class_scores, descended


class AlphaTIM(EpisodeClassifier):
    """TIM with Tsallis entropies, which care less for classes of equal size.

    From the class means, weights w_k of the classes descend `CE - H(mean p) + mean H(p)` by Adam.
    CE is the cross-entropy of the support and p the class distribution of a query, the softmax of
    `-scale / 2 * |x - w_k|^2`; `H(p) = (1 - sum p^alpha) / (alpha - 1)`. As in the authors' code
    all three terms weigh the same, and that of the support keeps Shannon's form.

    Olivier Veilleux, Malik Boudiaf, Pablo Piantanida, Ismail Ben Ayed: Realistic Evaluation of
    Transductive Few-Shot Learning, NeurIPS 2021, https://arxiv.org/abs/2204.11181.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, AlphaTIM
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(AlphaTIM()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, frozen_features=True)

    preprocessing: tuple[Step, ...] = ("unit",)
    alpha: Annotated[float, Field(gt=1)] | None = Field(
        default=None,
        description="near 1 Shannon's entropy, as in TIM; unset: that of the authors' code, 2 with "
        "one image of each class, 7 with five or more, otherwise 5",
    )
    steps: PositiveInt = Field(default=1000, description="the authors' code")
    scale: PositiveFloat = Field(default=15.0, description="the authors' temperature")
    learning_rate: PositiveFloat = Field(default=1e-4, description="the authors' code")

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        episodes = centered(episodes)
        alpha = self.alpha or _official_alpha(episodes.labeled / episodes.way)
        factor = alpha / ((alpha - 1) * episodes.queries)

        def slope(query: Tensor, logarithms: Tensor) -> Tensor:
            marginal = query.mean(dim=-1, keepdim=True)
            # Powers as exponentials: of many numbers these are far faster.
            return factor * (marginal ** (alpha - 1) - ((alpha - 1) * logarithms).exp())

        weights = descended(episodes, self.scale, 1.0, slope, self.steps, self.learning_rate)
        return class_scores(weights, episodes.query, self.scale).mT


def _official_alpha(shot: float) -> float:
    """The alpha for a mean number of images a class."""
    if shot == 1:
        return 2.0
    return 7.0 if shot >= 5 else 5.0
