"""The configs of the stages of ImageNet-FS."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from epcore.data.config import AugmentationName
from epcore.evaluation.config import NetworkConfig
from epcore.settings import ComputeConfig, Probability, Settings, StageConfig
from epcore.training.config import SeededConfig
from epcore.training.optimization import SteppedSgd


class ClassifierTraining(SteppedSgd):
    """Stage 1: cosine classifier of the base classes, drawn uniformly, then an image of each."""

    steps: PositiveInt = Field(description="of an epoch")
    batch_size: PositiveInt = Field(description="images of a step")
    scale: PositiveFloat = Field(
        description="what cosines are multiplied by at the start; it is learned"
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


class ClassMeans(Settings):
    """Means of the exemplars' unit vectors, with nothing to learn."""

    kind: Literal["class-means"]


class LwofAverage(Settings):
    """LwoF's averaging, see `epcore.imagenet_fs.lwof`."""

    kind: Literal["lwof-average"]


class LwofAttention(Settings):
    """LwoF's averaging and attention."""

    kind: Literal["lwof-attention"]
    attention_scale: PositiveFloat = Field(
        description="where the learned scale of attention starts"
    )


class WdaeGnn(Settings):
    """The denoising autoencoder, see `epcore.imagenet_fs.wdae`."""

    kind: Literal["wdae-gnn"]
    noise: NonNegativeFloat = Field(
        description="standard deviation of what is added to weights in training"
    )
    temperature: PositiveFloat = Field(
        description="what cosines are multiplied by before the softmax over neighbors"
    )
    neighbors: PositiveInt = Field(description="of each class in the graph")
    hidden: PositiveInt = Field(description="channels, in multiples of the feature size")
    dropout: Probability = Field(description="probability that a channel is dropped in training")
    reconstruction_weight: NonNegativeFloat = Field(
        description="weight of its loss, that of the classification being 1"
    )


Generator = Annotated[
    ClassMeans | LwofAverage | LwofAttention | WdaeGnn, Field(discriminator="kind")
]


class WeightPropagation(Settings):
    """Embedding propagation "right after the denoising autoencoder", on the class weights.

    What the paper leaves open is a setting.
    """

    alpha: Probability = Field(description="of the propagator")
    training: bool = Field(description="whether the layer is there in training, or at test only")
    nodes: Literal["all", "novel"] = Field(
        description="all weights propagate together, or the novel ones among themselves"
    )
    reconstruction: Literal["propagated", "generated"] = Field(
        description="the loss compares weights behind the layer or in front of it"
    )
    step: Literal["before", "after"] = Field(
        description="whether the step from the input weights to the generated ones is made before"
        " the layer or after it"
    )
    normalize_weights: bool = Field(
        description="whether weights are made unit vectors first, so that directions are mixed"
    )


Measure = Literal["novel", "all", "all-prior"]


class ExemplarsConfig(StageConfig):
    """Draw the exemplars of novel classes, for every K, split and trial."""

    stage_version: int = 1
    shots: tuple[int, ...]
    trials: dict[Literal["val", "novel"], int]
    seed: int


class ClassifierConfig(SeededConfig):
    """Train the cosine classifier."""

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
    one for each K; none if they stay as they are.
    """

    stage_version: int = 2
    generator: Generator
    propagation: WeightPropagation | None
    shots: tuple[int, ...]
    step_sizes: tuple[float, ...]
    novel_factors: tuple[float, ...] = Field(default=(), exclude_if=lambda value: not value)
    prior: float
