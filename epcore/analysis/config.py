"""The configs of the figures of embedding propagation itself."""

from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from epcore.evaluation.config import Propagation
from epcore.settings import ComputeConfig, Probability, Settings

AtLeastTwo = Annotated[int, Field(ge=2)]


class TwoMoons(Settings):
    """Embedding propagation of two moons, in random batches and of all points."""

    points: Annotated[int, Field(ge=4)] = Field(description="of both moons together")
    noise: PositiveFloat = Field(description="standard deviation of the points")
    embedding_alpha: Probability = Field(description="alpha of embedding propagation")
    batch_sizes: Annotated[tuple[AtLeastTwo, ...], Field(min_length=1)] = Field(
        description="points that are propagated together"
    )
    batches: AtLeastTwo = Field(description="random batches of each size that a point is in")
    examples: PositiveInt = Field(description="points whose projections stand out")
    draws: AtLeastTwo = Field(
        description="sets of points that the numbers are means over; the first is drawn"
    )
    seed: NonNegativeInt = Field(description="draws the points")

    @model_validator(mode="after")
    def _batches_are_parts(self) -> "TwoMoons":
        if max(self.batch_sizes) > self.points or self.examples > self.points:
            raise ValueError("batch_sizes and examples must not be larger than points")
        return self


class DecisionBoundary(Settings):
    """Decision boundaries of three classes in two dimensions."""

    points: AtLeastTwo = Field(description="of each class")
    spread: PositiveFloat = Field(
        description="standard deviation around centers on the unit circle"
    )
    labeled: PositiveInt = Field(
        description="points of each class that keep their label in panel c"
    )
    window: PositiveFloat = Field(description="half the width of what is drawn")
    grid: AtLeastTwo = Field(description="locations along each side")
    curvature_step: PositiveFloat = Field(
        description="length of boundary over which its turning is measured"
    )
    draws: AtLeastTwo = Field(
        description="sets of points that the numbers are means over; the first is drawn"
    )
    embedding_alpha: Probability = Field(description="alpha of embedding propagation")
    label_alpha: Probability = Field(description="alpha of label propagation")
    seed: NonNegativeInt = Field(description="draws the points")

    @model_validator(mode="after")
    def _some_points_are_unlabeled(self) -> "DecisionBoundary":
        if self.labeled >= self.points:
            raise ValueError("labeled must be smaller than points")
        return self


class InterpolatedPairs(Settings):
    """Which pairs of embeddings, and in how many steps from one to the other."""

    pairs: AtLeastTwo = Field(description="pairs of images, one of each of so many episodes")
    shown: PositiveInt = Field(description="curves that are drawn one by one")
    steps: AtLeastTwo = Field(description="steps from one image to the other")
    resamples: PositiveInt = Field(description="of the bootstrap")
    seed: NonNegativeInt = Field(description="draws the pairs")


class TwoMoonsConfig(ComputeConfig):
    """Propagate two moons."""

    stage_version: int = 3
    settings: TwoMoons


class DecisionBoundaryConfig(ComputeConfig):
    """Draw and measure decision boundaries."""

    stage_version: int = 3
    settings: DecisionBoundary


class InterpolationNetwork(Settings):
    """A recipe's network: what the figure calls it, its features, how it is tested."""

    name: str
    label: str
    features: str
    propagation: Propagation


class InterpolationConfig(ComputeConfig):
    """Class probabilities between pairs of embeddings; `note` says what they are of."""

    stage_version: int = 4
    networks: tuple[InterpolationNetwork, InterpolationNetwork]
    settings: InterpolatedPairs
    note: str
