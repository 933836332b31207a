"""The settings of generators of class weights."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from epcore.settings import Probability, Settings


class ClassMeans(Settings):
    """Means of the exemplars' unit vectors, with nothing to learn."""

    kind: Literal["class-means"]


class LwofAverage(Settings):
    """LwoF's averaging, see `epcore.generators.lwof`."""

    kind: Literal["lwof-average"]


class LwofAttention(Settings):
    """LwoF's averaging and attention."""

    kind: Literal["lwof-attention"]
    attention_scale: PositiveFloat = Field(
        description="where the learned scale of attention starts"
    )


class PmnSettings(Settings):
    """Prototype matching networks, see `epcore.generators.pmn`."""

    kind: Literal["pmn"]
    examples: NonNegativeInt = Field(
        description="of a novel class, generated ones included, which fill it up to this number; "
        "with 0 none is ever generated"
    )
    noise: PositiveFloat = Field(
        default=0.1,
        description="length of what noise adds to the unit vector of an exemplar, when training "
        "starts",
    )
    reads: PositiveInt = Field(
        default=5, description="how often a query's LSTM reads the prototypes"
    )


class DenoiserSettings(Settings):
    """The denoising autoencoder of `epcore.generators.wdae`, with the defaults of its authors."""

    noise: NonNegativeFloat = Field(
        default=0.08, description="standard deviation of what is added to weights in training"
    )
    temperature: PositiveFloat = Field(
        default=5, description="what cosines are multiplied by before the softmax over neighbors"
    )
    neighbors: PositiveInt = Field(default=10, description="of each class in the graph")
    hidden: PositiveInt = Field(default=3, description="channels, in multiples of the feature size")
    dropout: Probability = Field(
        default=0.7, description="probability that a channel is dropped in training"
    )
    reconstruction_weight: NonNegativeFloat = Field(
        default=1, description="weight of its loss, that of the classification being 1"
    )


class WdaeSettings(DenoiserSettings):
    """The generator that denoises base weights and class means together."""

    kind: Literal["wdae-gnn"]


Generator = Annotated[
    ClassMeans | LwofAverage | LwofAttention | PmnSettings | WdaeSettings,
    Field(discriminator="kind"),
]


class LinearLayer(Settings):
    """A linear layer of all classes, trained in the test, see `epcore.generators.linear_layer`."""

    kind: Literal["linear-layer"]
    iterations: PositiveInt = Field(description="steps of SGD")
    batch_size: PositiveInt = Field(description="images of a step, of base and novel classes")
    learning_rate: PositiveFloat = Field(description="of all steps")
    momentum: Probability = Field(description="of SGD, and its dampening")
    weight_decay: NonNegativeFloat = Field(description="of weights and biases")


# A generator that is made from the classifier of stage 1, or a layer that is not.
TestedGenerator = Annotated[Generator | LinearLayer, Field(discriminator="kind")]
# Kinds whose test takes hours of a processor at the paper's scale: a layer is trained for each
# trial, or each query reads all prototypes several times.
LONG_TESTS = ("linear-layer", "pmn")


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
