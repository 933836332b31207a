"""PT-MAP (Hu et al. 2021)."""

from typing import ClassVar

from pydantic import Field, NonNegativeInt, PositiveFloat
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step
from epcore.classifiers.solvers.balanced_means import balanced_means


class PTMAP(EpisodeClassifier):
    """Class means that move by optimal transport from queries to classes.

    See `balanced_means`. As in the authors' code every class gets exactly the same number of
    queries, whatever their classes are. Results differ only where
    that code's transport ends early: it stops for all episodes of a batch together, ours is exact.
    Nor are features rotated to fewer dimensions, which changes nothing.

    Yuqing Hu, Vincent Gripon, Stéphane Pateux: Leveraging the Feature Distribution in
    Transfer-based Few-Shot Learning, ICANN 2021, https://arxiv.org/abs/2006.03806.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, PTMAP
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(PTMAP()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(transductive=True, balanced=True)

    preprocessing: tuple[Step, ...] = Field(
        default=("power", "unit", "center-split", "unit"),
        description="what is done to the features first, in this order; as in the authors' code",
    )
    scale: PositiveFloat = Field(
        default=10, description="weight of the squared distances (authors' code: lam)"
    )
    rate: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="how far means move in a step (authors' code: alpha)",
    )
    steps: NonNegativeInt = Field(default=20, description="how often means move (authors' code)")

    def logits(self, episodes: EpisodeBatch) -> Tensor:
        return balanced_means(episodes, self.scale, self.rate, self.steps)
