"""The configs of the stages of ImageNet-FS."""

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from epcore.data.config import AugmentationName
from epcore.evaluation.config import NetworkConfig
from epcore.generators.config import Generator, TestedGenerator, WeightPropagation
from epcore.settings import ComputeConfig, StageConfig
from epcore.training.config import SeededConfig
from epcore.training.optimization import SteppedSgd


class ClassifierTraining(SteppedSgd):
    """Stage 1: a classifier of the base classes, drawn uniformly, then an image of each."""

    steps: PositiveInt = Field(description="of an epoch")
    batch_size: PositiveInt = Field(description="images of a step")
    scale: PositiveFloat = Field(
        description="what cosines are multiplied by at the start; it is learned"
    )
    linear: bool = Field(
        default=False,
        exclude_if=lambda value: not value,
        description="whether the classifier is a linear layer without bias, not one of cosines",
    )
    gradient_weight: NonNegativeFloat = Field(
        default=0,
        exclude_if=lambda value: not value,
        description="weight of the squared norm of the gradient that the loss of a batch has with "
        "respect to the weights of a linear classifier",
    )
    augmentation: tuple[AugmentationName, ...] = Field(
        description="what is done to images, at random"
    )
    rotation_weight: NonNegativeFloat = Field(
        default=0,
        exclude_if=lambda value: not value,
        description="weight of the loss over rotations, for which each image is seen in all four; "
        "without it there are none",
    )

    @model_validator(mode="after")
    def _linear_if_its_gradient_counts(self) -> "ClassifierTraining":
        if self.gradient_weight and not self.linear:
            raise ValueError("gradient_weight is of a linear classifier: set linear to true")
        return self


class GeneratorTraining(SteppedSgd):
    """Stage 2: episodes of fake novel classes, which are base classes taken out of the base."""

    steps: PositiveInt = Field(description="of an epoch")
    batch_size: PositiveInt = Field(description="episodes of a step")
    novel: PositiveInt = Field(
        description="fake novel classes of an episode, which are base classes"
    )
    novel_queries: PositiveInt = Field(description="query images of each fake novel class")
    base_queries: PositiveInt = Field(description="query images of the other classes, in all")
    exemplars: PositiveInt | None = Field(
        default=None,
        description="images of a fake novel class, so that one generator serves all K; without it"
        " there is one generator for each K",
    )


Measure = Literal["novel", "all", "all-prior"]


class ExemplarsConfig(StageConfig):
    """Draw the exemplars of novel classes, for every K, split and trial."""

    stage_version: int = 1
    shots: tuple[int, ...]
    trials: dict[Literal["val", "novel"], int]
    seed: int


class ClassifierConfig(SeededConfig):
    """Train the classifier of the base classes."""

    stage_version: int = 2
    training: ClassifierTraining


class ImageFeaturesConfig(NetworkConfig):
    """Compute the features of every image of a data set."""

    stage_version: int = 1


class GeneratorConfig(ComputeConfig):
    """Train generators of class weights, one for each of the `shots`.

    `propagation` is that of training; its `step` matters at test only and is not part of it.
    """

    stage_version: int = 1
    generator: Generator
    training: GeneratorTraining
    propagation: WeightPropagation | None
    shots: tuple[int, ...]
    seed: int


class TrialsConfig(ComputeConfig):
    """Test generators of class weights on frozen exemplars.

    step_sizes: one for each K. novel_factors: what the scores of novel classes are multiplied by,
    one for each K; none if they stay as they are. seed: of what a generator draws in the test.
    """

    stage_version: int = 2
    generator: TestedGenerator
    propagation: WeightPropagation | None
    shots: tuple[int, ...]
    step_sizes: tuple[float, ...]
    novel_factors: tuple[float, ...] = Field(default=(), exclude_if=lambda value: not value)
    prior: float
    seed: int = Field(default=0, exclude_if=lambda value: not value)
