"""The settings of ImageNet-FS: the file imagenet-fs.yaml and a scale's section `imagenet_fs`."""

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from epcore.plan.recipe_models import AugmentationName, BackboneInfo, SteppedSgd, View
from epcore.plan.settings import JobResources, Probability, Ratio, Settings

Shots = Annotated[tuple[PositiveInt, ...], Field(min_length=1)]
Trials = Annotated[int, Field(ge=2)]


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


Generator = Annotated[LwofAverage | LwofAttention | WdaeGnn, Field(discriminator="kind")]


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


class Method(Settings):
    """A way to get weights of novel classes."""

    generator: Generator = Field(description="what makes the weights of novel classes")
    training: GeneratorTraining = Field(description="how it is trained")
    step_sizes: tuple[Annotated[float, Field(gt=0, le=1)], ...] | None = Field(
        default=None,
        description="one for each K: how far to go from the input weights to the generated ones",
    )
    propagation: WeightPropagation | None = Field(
        default=None, description="embedding propagation on the weights; none if there is none"
    )


Measure = Literal["novel", "all", "all-prior"]


class TrialCounts(Settings):
    """Draws of exemplars for validation and test; an interval needs two."""

    val: Trials = Field(description="draws of exemplars for the choice of a generator's epoch")
    novel: Trials = Field(description="draws of exemplars for tables")


class ImageNetFsSettings(Settings):
    """The file imagenet-fs.yaml; its methods are partial, see `Method`."""

    shots: Shots = Field(description="K: numbers of exemplars of a novel class")
    trials: TrialCounts = Field(description="draws of exemplars")
    prior: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="the probability of a novel class in the measure all-prior"
    )
    view: View = Field(description="what a network sees of a stored image")
    networks: dict[str, BackboneInfo] = Field(description="name -> feature extractor")
    classifier: ClassifierTraining = Field(
        description="stage 1: the cosine classifier of the base classes"
    )
    methods: dict[str, dict[str, Any]] = Field(
        description="name -> way to get weights of novel classes"
    )

    @model_validator(mode="after")
    def _shots_rise(self) -> "ImageNetFsSettings":
        if list(self.shots) != sorted(set(self.shots)):
            raise ValueError("shots must rise")
        return self


class ImageNetFsRun(Settings):
    """A data set and a network."""

    dataset: str = Field(description="its images; its queries are the data set <dataset>-queries")
    network: str = Field(description="a name of imagenet-fs.yaml's `networks`")


class ImageNetFsResources(Settings):
    """What jobs of ImageNet-FS ask of a machine or cluster."""

    network: JobResources = Field(description="of stage 1")
    features: JobResources = Field(description="of the features")
    weights: JobResources = Field(description="of a generator or its test")


class ImageNetFsScale(Settings):
    """What a scale has of ImageNet-FS."""

    runs: Annotated[tuple[ImageNetFsRun, ...], Field(min_length=1)] = Field(
        description="data sets and networks"
    )
    width: Ratio = Field(
        default=Fraction(1), description="what the network's numbers of channels are multiplied by"
    )
    resources: ImageNetFsResources = Field(description="what its jobs ask of a machine or cluster")
    settings: dict[str, Any] = Field(
        default_factory=dict, description="what is laid over imagenet-fs.yaml"
    )
