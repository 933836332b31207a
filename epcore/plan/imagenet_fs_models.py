"""The settings of ImageNet-FS: the file imagenet-fs.yaml and a scale's section `imagenet_fs`."""

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from epcore.plan.recipe_models import Architecture, AugmentationName, SteppedDescent, View
from epcore.plan.scale_models import JobResources
from epcore.plan.settings import Probability, Ratio, Settings

Shots = Annotated[tuple[PositiveInt, ...], Field(min_length=1)]
Trials = Annotated[int, Field(ge=2)]


class ClassifierTraining(SteppedDescent):
    """Stage 1: cosine classifier of the base classes, drawn uniformly, then an image of each.

    `steps` an epoch; `scale` multiplies the cosines at the start and is learned.
    """

    steps: PositiveInt
    batch_size: PositiveInt
    scale: PositiveFloat
    augmentation: tuple[AugmentationName, ...]


class GeneratorTraining(SteppedDescent):
    """Stage 2: episodes of fake novel classes, which are base classes taken out of the base.

    An episode has `novel` of them, `novel_queries` images of each and `base_queries` of the rest;
    a step has `batch_size` episodes. With `exemplars` images of a fake novel class one generator
    serves all K; without it there is one for each K, trained with K.
    """

    steps: PositiveInt
    batch_size: PositiveInt
    novel: PositiveInt
    novel_queries: PositiveInt
    base_queries: PositiveInt
    exemplars: PositiveInt | None = None


class LwofAverage(Settings):
    """LwoF's averaging, see `epcore.imagenet_fs.lwof`."""

    kind: Literal["lwof-average"]


class LwofAttention(Settings):
    """LwoF's averaging and attention; `attention_scale` is where the learned one starts."""

    kind: Literal["lwof-attention"]
    attention_scale: PositiveFloat


class WdaeGnn(Settings):
    """The denoising autoencoder, see `epcore.imagenet_fs.wdae`.

    `hidden` is in multiples of the feature size; `reconstruction_weight` that of its loss beside
    the classification's.
    """

    kind: Literal["wdae-gnn"]
    noise: NonNegativeFloat
    temperature: PositiveFloat
    neighbors: PositiveInt
    hidden: PositiveInt
    dropout: Probability
    reconstruction_weight: NonNegativeFloat


Generator = Annotated[LwofAverage | LwofAttention | WdaeGnn, Field(discriminator="kind")]


class WeightPropagation(Settings):
    """Embedding propagation "right after the denoising autoencoder", on the class weights.

    What the paper leaves open is a setting:
    - alpha: of the propagator.
    - training: whether the layer is there in training, or at test only.
    - nodes: `all` weights propagate together, or the `novel` ones among themselves.
    - reconstruction: the loss compares weights after it (`propagated`) or before (`generated`).
    - step: the step from the input weights to the generated ones is made before it or after.
    - normalize_weights: weights are made unit vectors first, so that the graph is one of
      directions and it is directions that are mixed; else both see weights of any length.
    """

    alpha: Probability
    training: bool
    nodes: Literal["all", "novel"]
    reconstruction: Literal["propagated", "generated"]
    step: Literal["before", "after"]
    normalize_weights: bool


class Method(Settings):
    """A way to get weights of novel classes. `step_sizes` has one for each K."""

    generator: Generator
    training: GeneratorTraining
    step_sizes: tuple[Annotated[float, Field(gt=0, le=1)], ...] | None = None
    propagation: WeightPropagation | None = None


class Network(Settings):
    """A feature extractor; `label` is how tables call it."""

    architecture: Architecture
    label: str


Measure = Literal["novel", "all", "all-prior"]


class TrialCounts(Settings):
    """Draws of exemplars for validation and test; an interval needs two."""

    val: Trials
    novel: Trials


class ImageNetFsSettings(Settings):
    """The file imagenet-fs.yaml; `methods` are partial, see `Method`.

    `prior` is the probability of a novel class in the measure `all-prior`.
    """

    shots: Shots
    trials: TrialCounts
    prior: Annotated[float, Field(gt=0, lt=1)]
    view: View
    networks: dict[str, Network]
    classifier: ClassifierTraining
    methods: dict[str, dict[str, Any]]

    @model_validator(mode="after")
    def _shots_rise(self) -> "ImageNetFsSettings":
        if list(self.shots) != sorted(set(self.shots)):
            raise ValueError("shots must rise")
        return self


class ImageNetFsRun(Settings):
    """A data set, which has queries of its own under <dataset>-queries, and a network."""

    dataset: str
    network: str


class ImageNetFsResources(Settings):
    """Of stage 1 (`network`), of the features, and of a generator or its test (`weights`)."""

    network: JobResources
    features: JobResources
    weights: JobResources


class ImageNetFsScale(Settings):
    """What a scale has of ImageNet-FS. `settings` are laid over imagenet-fs.yaml."""

    runs: Annotated[tuple[ImageNetFsRun, ...], Field(min_length=1)]
    width: Ratio = Fraction(1)
    resources: ImageNetFsResources
    settings: dict[str, Any] = Field(default_factory=dict)
