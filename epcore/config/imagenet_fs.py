"""The file imagenet-fs.yaml, and a scale's section `imagenet_fs`."""

from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from epcore.config.names import Name
from epcore.config.recipes import BackboneInfo
from epcore.config.resources import JobResources
from epcore.data.config import View
from epcore.generators.config import TestedGenerator, WeightPropagation
from epcore.imagenet_fs.config import ClassifierTraining, GeneratorTraining
from epcore.settings import Ratio, Settings

Shots = Annotated[tuple[PositiveInt, ...], Field(min_length=1)]
Trials = Annotated[int, Field(ge=2)]


class Network(BackboneInfo):
    """A feature extractor of ImageNet-FS."""

    classifier: dict[str, Any] = Field(
        default_factory=dict, description="what is laid over `classifier`, its training"
    )


class Method(Settings):
    """A way to get weights of novel classes."""

    generator: TestedGenerator = Field(description="what makes the weights of novel classes")
    training: GeneratorTraining | None = Field(
        default=None,
        description="how it is trained before the test; class means and linear layers are not",
    )
    step_sizes: tuple[Annotated[float, Field(gt=0, le=1)], ...] | None = Field(
        default=None,
        description="one for each K: how far to go from the input weights to the generated ones",
    )
    novel_factors: tuple[PositiveFloat, ...] | None = Field(
        default=None,
        description="one for each K: what scores of novel classes are multiplied by, for the "
        "measures that have base classes too",
    )
    propagation: WeightPropagation | None = Field(
        default=None, description="embedding propagation on the weights; none if there is none"
    )

    @model_validator(mode="after")
    def _trained_if_it_learns(self) -> "Method":
        untrained = ("class-means", "linear-layer")
        if (self.training is None) != (self.generator.kind in untrained):
            kinds = " or ".join(untrained)
            raise ValueError(f"give training, unless the generator is of kind {kinds}")
        if self.propagation is not None and self.generator.kind == "linear-layer":
            raise ValueError("a linear layer has no propagation")
        return self


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
    networks: dict[Name, Network] = Field(description="name -> feature extractor")
    classifier: ClassifierTraining = Field(
        description="stage 1: the cosine classifier of the base classes"
    )
    methods: dict[Name, dict[str, Any]] = Field(
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
