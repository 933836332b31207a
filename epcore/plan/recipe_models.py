"""The settings of networks and recipes."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from epcore.plan.load import suggest
from epcore.plan.partial import EXTENDS, Keys, PartOf
from epcore.plan.settings import Markup, Probability, Ratio, Settings

Architecture = Literal["conv4", "resnet12", "wide-resnet", "resnet10", "resnet18"]


class BackboneInfo(Settings):
    """A backbone, and how tables call it."""

    architecture: Architecture = Field(description="the network, a name of epcore.backbones")
    label: str = Field(description="how tables call it")


class Backbone(Settings):
    """A backbone as a stage builds it; see `epcore.backbones`."""

    architecture: Architecture = Field(description="the network, a name of epcore.backbones")
    width: Ratio = Field(
        default=Fraction(1), description="what its numbers of channels are multiplied by"
    )
    depth: Ratio = Field(
        default=Fraction(1), description="what its number of blocks is multiplied by"
    )

    def __str__(self) -> str:
        return f"{self.architecture} of width {self.width} and depth {self.depth}"


# A file each; importing them would load torch.
CLASSIFIERS = sorted(
    path.stem.replace("_", "-")
    for path in (Path(__file__).parents[1] / "classifiers").glob("[!_]*.py")
)


def _classifier(value: Any) -> Any:
    """The name of a classifier, or a mapping of `name` and settings; without any, the name."""
    if isinstance(value, dict) and "name" not in value:
        raise ValueError("the key 'name' is missing; say which classifier, as in name: ridge")
    name = value.get("name") if isinstance(value, dict) else value
    if name not in CLASSIFIERS:
        near = suggest(str(name), CLASSIFIERS).removeprefix("; ")
        raise ValueError(f"there is no such classifier ({near})")
    return name if value == {"name": name} else value


class Propagation(Settings):
    """Embedding propagation and the classifier behind it; see `epcore.propagation`."""

    embedding: bool = Field(description="whether embedding propagation is there")
    classifier: Annotated[str | dict[str, Any], AfterValidator(_classifier)] = Field(
        description="a file of epcore.classifiers, or its `name` and settings of its own; it also"
        " takes those of the settings here that it has fields for"
    )
    part: Literal["full", "off-diagonal", "diagonal"] = Field(
        description="of the propagator: all of it, or what stands off or on its diagonal"
    )
    embedding_alpha: Probability = Field(
        description="alpha of embedding propagation, how far embeddings spread"
    )
    label_alpha: Probability = Field(
        description="alpha of label propagation, how far labels spread"
    )
    bandwidth: Literal["std", "var"] = Field(
        description="squared distances are divided by their standard deviation or their variance"
    )
    normalize_labels: bool = Field(
        description="whether the rows of the label propagator are divided by their sums"
    )
    query_logits: Literal["log-scores", "scores"] = Field(
        description="what the softmax of queries sees: logarithms of scores, or the scores"
    )


class Plateau(Settings):
    """When the learning rate falls: after more than `patience` epochs without a gain."""

    metric: Literal["accuracy", "loss"] = Field(description="the number of validation that counts")
    patience: NonNegativeInt = Field(description="epochs without a gain that are waited")
    factor: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="what the learning rate is multiplied by"
    )


class SgdSettings(Settings):
    """SGD with Nesterov momentum and weight decay on all parameters."""

    epochs: PositiveInt = Field(description="the most epochs of a training")
    learning_rate: PositiveFloat = Field(description="in the first epoch")
    momentum: Probability = Field(description="Nesterov's")
    weight_decay: NonNegativeFloat = Field(description="of all parameters")


class Optimization(SgdSettings):
    """The learning rate falls by one of two schedules.

    plateau: where `plateau` says so; training ends once the rate fell by `stop_ratio`.
    cosine: from the first epoch to the last along half a wave, `(1 + cos(pi epoch / epochs)) / 2`;
    `plateau` and `stop_ratio` then say nothing.
    """

    schedule: Literal["plateau", "cosine"] = Field(
        description="how the learning rate falls: after epochs without a gain, or along half a "
        "cosine wave"
    )
    plateau: Plateau = Field(description="when and how far it falls with schedule `plateau`")
    stop_ratio: Probability = Field(
        description="with schedule `plateau` a training ends once the learning rate is this part "
        "of the first one"
    )


class SteppedSgd(SgdSettings):
    """SGD whose learning rate falls in steps."""

    drops: tuple[PositiveInt, ...] = Field(
        description="epochs after which the learning rate falls to a tenth"
    )
    keep: Literal["best", "last"] = Field(
        description="which epoch's weights count: the best on validation, or the last"
    )

    @model_validator(mode="after")
    def _drops_in_time(self) -> "SteppedSgd":
        if list(self.drops) != sorted(set(self.drops)) or (self.drops or (0,))[-1] >= self.epochs:
            raise ValueError("drops must rise and be smaller than epochs")
        return self

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, which counts from 0."""
        return self.learning_rate * 0.1 ** sum(drop <= epoch for drop in self.drops)


class Pretraining(Optimization):
    """Phase one: classes of base images, and their rotations."""

    batch_size: Annotated[int, Field(ge=2)] = Field(
        description="images of a step, before they are rotated"
    )
    rotated_copies: bool = Field(description="whether a batch holds each image in four rotations")
    rotation_weight: NonNegativeFloat = Field(description="weight of the rotation loss")
    rotation_input: Literal["features", "embeddings"] = Field(
        description="what the rotation head sees"
    )
    heads: Literal["linear", "cosine"] = Field(
        default="linear",
        exclude_if=lambda value: value == "linear",
        description="layers over classes and rotations; cosine ones have a learned scale",
    )

    @model_validator(mode="after")
    def _rotations_to_tell(self) -> "Pretraining":
        if self.rotation_weight > 0 and not self.rotated_copies:
            raise ValueError("rotation_weight must be 0 without rotated_copies")
        return self

    @property
    def copies(self) -> int:
        """How many images a network sees of each image of a batch."""
        return 4 if self.rotated_copies else 1


class Finetuning(Optimization):
    """Phase two: one episode of `way` classes a step; the shot is the checkpoint's."""

    episodes_per_epoch: PositiveInt = Field(description="steps of an epoch, an episode each")
    way: Annotated[int, Field(ge=2)] = Field(description="classes of a training episode")
    queries: PositiveInt = Field(description="query images of each class")
    class_weight: NonNegativeFloat = Field(description="weight of the loss over all base classes")
    class_input: Literal["features", "embeddings"] = Field(
        description="what the head over all base classes sees"
    )


class View(Settings):
    """What a network sees of a stored image: resized by one ratio, then the center cropped.

    Both are fractions of the stored size, so 92/84 and 80/84 are the authors' Resize(92) and
    CenterCrop(80) for images of 84 pixels, and the same picture at any other size.
    """

    resize: Ratio = Field(
        description="side of the resized image, as a ratio of the stored one, such as 92/84"
    )
    crop: Ratio = Field(
        description="side of the square that is cropped from its center, as a ratio of the stored"
        " one"
    )

    @model_validator(mode="after")
    def _crop_fits(self) -> "View":
        if self.crop > self.resize:
            raise ValueError("crop must not be larger than resize")
        return self


AugmentationName = Literal["flip", "crop", "jitter", "ordered-jitter"]
Precision = Literal["fp32", "tf32", "bf16"]


class Augmentation(Settings):
    """What each phase does to its images; see `epcore.data.augment`."""

    pretraining: tuple[AugmentationName, ...] = Field(
        description="what is done to images in pretraining, at random"
    )
    finetuning: tuple[Literal["flip"], ...] = Field(
        description="what is done to images in fine-tuning, at random"
    )


Phase = Literal["pretraining", "finetuning", "testing"]
TrainingPhase = Literal["pretraining", "finetuning"]


class RecipeSettings(Settings):
    """How a network is trained and tested."""

    propagation: Propagation = Field(
        description="embedding propagation, and the classifier behind it"
    )
    phases: dict[Phase, Annotated[dict[str, Any], PartOf(Propagation)]] = Field(
        default_factory=dict,
        description="other settings of propagation in pretraining, finetuning or testing",
    )
    tested: Literal["finetuned", "pretrained"] = Field(
        default="finetuned",
        description="the checkpoint that the test sees; without episodic fine-tuning it is the "
        "pretrained one",
    )
    pretraining: Pretraining = Field(description="phase one: classes and rotations of base images")
    finetuning: Finetuning = Field(description="phase two: episodes of base classes")
    augmentation: Augmentation = Field(description="what each phase does to its images")
    view: View = Field(description="what a network sees of a stored image")


class Recipe(RecipeSettings):
    """A recipe resolved for one backbone and one scale."""

    description: str = Field(description="what it is, in a line")
    protocol: str = Field(description="the reading of the paper that it follows")
    grid: dict[str, tuple[Any, ...]] = Field(
        default_factory=dict, description="see `ClassifierChoice`"
    )

    def propagation_in(self, phase: Phase) -> Propagation:
        """The settings of propagation in one phase."""
        settings = self.propagation.model_dump() | self.phases.get(phase, {})
        return Propagation.model_validate(settings)


class ClassifierChoice(Settings):
    """A classifier that any recipe's network may be tested with, an entry of classifiers.yaml."""

    label: Markup = Field(description="how tables call it")
    classifier: Annotated[str | dict[str, Any], AfterValidator(_classifier)] = Field(
        description="a file of epcore.classifiers, or its `name` and settings"
    )
    grid: dict[str, Annotated[tuple[Any, ...], Field(min_length=2)]] = Field(
        default_factory=dict,
        description="setting -> values of which the best is taken on validation episodes",
    )


class Candidates(Settings):
    """Settings of which validation chooses, for each phase: a recipe each, by its name."""

    pretraining: dict[str, Pretraining] = Field(description="name -> its settings of pretraining")
    finetuning: dict[str, Finetuning] = Field(description="name -> its settings of fine-tuning")


# What a partial recipe may have besides the settings of a whole one.
PARTS: Keys = {"backbones": (dict[str, RecipeSettings], "what holds for one backbone alone")}
_NAMED: Keys = {
    "protocol": (str, "the reading of the paper that it follows"),
    "description": (str, "what it is, in a line"),
    "candidates": (Candidates, "settings of which validation chooses"),
}
ProtocolPart = Annotated[
    dict[str, Any], PartOf(RecipeSettings, {**PARTS, **EXTENDS}, "PartialProtocol")
]
RecipePart = Annotated[
    dict[str, Any], PartOf(RecipeSettings, {**PARTS, **EXTENDS, **_NAMED}, "PartialRecipe")
]


class RecipeSources(Settings):
    """Partial recipes: a protocol reads the paper one way, a recipe changes it."""

    protocols: dict[str, ProtocolPart] = Field(description="readings of the paper")
    recipes: dict[str, RecipePart] = Field(description="what is trained and tested")
