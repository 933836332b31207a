"""What every classifier of the queries of few-shot episodes has."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import Field, field_validator
from torch import Tensor

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.preprocessing import Step, preprocessed
from epcore.propagation import at_least_float32, no_autocast
from epcore.settings import Settings


@dataclass(frozen=True)
class Needs:
    """What a classifier takes of an episode besides the support and the query that it classifies.

    Attributes:
        transductive: the scores of a query depend on the other queries.
        unlabeled: it takes unlabeled images. Episodes that have some are refused for the others.
        instead_of_queries: where there are unlabeled images, queries have no say in each other.
        balanced: it assumes that each class has as many queries as any other, or as many of the
            unlabeled images that take their place.
        base_weights: it takes the weights of the base classes, of the linear layer that the
            network was trained with.
        equal_shots: it takes as many support images of each class; its random draws are of classes
            of one size.
        frozen_features: its scores have no gradient with respect to the features, or a wrong one,
            so that no network can be trained through it.
    """

    transductive: bool = False
    unlabeled: bool = False
    instead_of_queries: bool = False
    balanced: bool = False
    base_weights: bool = False
    equal_shots: bool = False
    frozen_features: bool = False


class EpisodeClassifier(Settings, ABC):
    """A method and its settings, which are its fields."""

    needs: ClassVar[Needs] = Needs()

    preprocessing: tuple[Step, ...] = Field(
        default=(), description="what is done to the features first, in this order"
    )

    @field_validator("preprocessing")
    @classmethod
    def _steps_that_fit(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        if "center-base" in steps[1:]:
            raise ValueError("center-base comes first: the mean is that of the features themselves")
        if "power" in steps and any(
            step.startswith("center") for step in steps[: steps.index("power")]
        ):
            raise ValueError("power comes before centering, which makes features negative")
        return steps

    @property
    def name(self) -> str:
        """The classifier's name in recipes."""
        return type(self).__module__.rpartition(".")[-1].replace("_", "-")

    @property
    def transductive(self) -> bool:
        """Whether the scores of a query depend on the other queries, without unlabeled images."""
        return self.needs.transductive or self.shares_preprocessing

    @property
    def shares_preprocessing(self) -> bool:
        """Whether its preprocessing takes a mean over queries."""
        return not {"center-episode", "center-split"}.isdisjoint(self.preprocessing)

    @property
    def balanced(self) -> bool:
        """Whether it assumes that each class has as many queries as any other."""
        return self.needs.balanced or "center-split" in self.preprocessing

    @property
    def centers_on_base(self) -> bool:
        """Whether it takes the mean feature of the base images."""
        return "center-base" in self.preprocessing

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        """Logits `(..., queries, way)`: their softmax is the class distribution of each query.

        Every episode is scored as if it were alone. Features in half precision, as under autocast,
        are scored in float32, of which the logits are then.

        Raises:
            ValueError: for unlabeled images, if it takes none, or without what it needs.
        """
        if episodes.unlabeled and not self.needs.unlabeled:
            raise ValueError(f"the classifier {self.name} takes no unlabeled images")
        if self.needs.equal_shots and episodes.equal_shots is None:
            raise ValueError(
                f"the classifier {self.name} takes as many support images of each class, and is "
                f"given {episodes.shots}"
            )
        exact = at_least_float32(episodes.points)
        with no_autocast(exact):
            points = preprocessed(self.preprocessing, replace(episodes, points=exact))
            return self.logits(replace(episodes, points=points, base_mean=None))

    @abstractmethod
    def logits(self, episodes: EpisodeBatch) -> Tensor:
        """`scores` of features that are preprocessed."""
