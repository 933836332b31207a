"""The settings of networks and recipes."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from epcore.plan.load import suggest
from epcore.plan.settings import Markup, Probability, Ratio, Settings

Architecture = Literal["conv4", "resnet12", "wide-resnet", "resnet10", "resnet18"]


class BackboneInfo(Settings):
    """A backbone of the registry; `label` is how tables call it."""

    architecture: Architecture
    label: str


class Backbone(Settings):
    """A backbone as a stage builds it; see `epcore.backbones`."""

    architecture: Architecture
    width: Ratio = Fraction(1)
    depth: Ratio = Fraction(1)

    def __str__(self) -> str:
        return f"{self.architecture} of width {self.width} and depth {self.depth}"


# A file each; importing them would load torch.
CLASSIFIERS = sorted(
    path.stem.replace("_", "-")
    for path in (Path(__file__).parents[1] / "classifiers").glob("[!_]*.py")
)


def _classifier(value: Any) -> Any:
    """The name of a classifier, or a mapping of `name` and settings; without any, the name."""
    name = value.get("name") if isinstance(value, dict) else value
    if name not in CLASSIFIERS:
        near = suggest(str(name), CLASSIFIERS).removeprefix("; ")
        raise ValueError(f"there is no such classifier ({near})")
    return name if value == {"name": name} else value


class Propagation(Settings):
    """Embedding propagation and the classifier behind it; `epcore.propagation` has their meaning.

    `classifier` is the name of a file of `epcore.classifiers`, or a mapping of `name` and the
    method's own settings. It also takes those of the settings here that it has fields for: label
    propagation all but `embedding`, `part` and `embedding_alpha`.
    """

    embedding: bool
    classifier: Annotated[str | dict[str, Any], BeforeValidator(_classifier)]
    part: Literal["full", "off-diagonal", "diagonal"]
    embedding_alpha: Probability
    label_alpha: Probability
    bandwidth: Literal["std", "var"]
    normalize_labels: bool
    query_logits: Literal["log-scores", "scores"]


class Plateau(Settings):
    """Multiply the learning rate by `factor` after more than `patience` epochs without a gain."""

    metric: Literal["accuracy", "loss"]
    patience: NonNegativeInt
    factor: Annotated[float, Field(gt=0, lt=1)]


class SgdSettings(Settings):
    """SGD with Nesterov momentum and weight decay on all parameters."""

    epochs: PositiveInt
    learning_rate: PositiveFloat
    momentum: Probability
    weight_decay: NonNegativeFloat


class Optimization(SgdSettings):
    """The learning rate falls by one of two schedules.

    plateau: where `plateau` says so; training ends once the rate fell by `stop_ratio`.
    cosine: from the first epoch to the last along half a wave, `(1 + cos(pi epoch / epochs)) / 2`;
    `plateau` and `stop_ratio` then say nothing.
    """

    schedule: Literal["plateau", "cosine"]
    plateau: Plateau
    stop_ratio: Probability


class SteppedDescent(SgdSettings):
    """The learning rate falls to a tenth after each of the epochs `drops`.

    `keep` says which epoch's weights count: the best on validation, or the last.
    """

    drops: tuple[PositiveInt, ...]
    keep: Literal["best", "last"]

    @model_validator(mode="after")
    def _drops_in_time(self) -> "SteppedDescent":
        if list(self.drops) != sorted(set(self.drops)) or (self.drops or (0,))[-1] >= self.epochs:
            raise ValueError("drops must rise and be smaller than epochs")
        return self

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, which counts from 0."""
        return self.learning_rate * 0.1 ** sum(drop <= epoch for drop in self.drops)


class Pretraining(Optimization):
    """Phase one; `batch_size` counts images before they are rotated.

    With `rotated_copies` a batch holds each image in four rotations.
    """

    batch_size: Annotated[int, Field(ge=2)]
    rotated_copies: bool
    rotation_weight: NonNegativeFloat
    rotation_input: Literal["features", "embeddings"]
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

    episodes_per_epoch: PositiveInt
    way: Annotated[int, Field(ge=2)]
    queries: PositiveInt
    class_weight: NonNegativeFloat
    class_input: Literal["features", "embeddings"]


class View(Settings):
    """What a network sees of a stored image: resized by one ratio, then the center cropped.

    Both are fractions of the stored size, so 92/84 and 80/84 are the authors' Resize(92) and
    CenterCrop(80) for images of 84 pixels, and the same picture at any other size.
    """

    resize: Ratio
    crop: Ratio

    @model_validator(mode="after")
    def _crop_fits(self) -> "View":
        if self.crop > self.resize:
            raise ValueError("crop must not be larger than resize")
        return self


AugmentationName = Literal["flip", "crop", "jitter", "ordered-jitter"]
Precision = Literal["fp32", "tf32", "bf16"]


class Augmentation(Settings):
    """What each phase does to its images; see `epcore.data.augment`."""

    pretraining: tuple[AugmentationName, ...]
    finetuning: tuple[Literal["flip"], ...]


Phase = Literal["pretraining", "finetuning", "testing"]
TrainingPhase = Literal["pretraining", "finetuning"]


class RecipeSettings(Settings):
    """How a network is trained and tested.

    `phases` lays other settings over `propagation` in one phase. `tested` says which checkpoint
    the test sees: without episodic fine-tuning it is the pretrained one.
    """

    propagation: Propagation
    phases: dict[Phase, dict[str, Any]] = Field(default_factory=dict)
    tested: Literal["finetuned", "pretrained"] = "finetuned"
    pretraining: Pretraining
    finetuning: Finetuning
    augmentation: Augmentation
    view: View


class Recipe(RecipeSettings):
    """A recipe resolved for one backbone and one scale; `protocol` is the reading it follows."""

    description: str
    protocol: str
    grid: dict[str, tuple[Any, ...]] = Field(
        default_factory=dict, description="see `ClassifierChoice`"
    )

    def propagation_in(self, phase: Phase) -> Propagation:
        """The settings of propagation in one phase."""
        settings = self.propagation.model_dump() | self.phases.get(phase, {})
        return Propagation.model_validate(settings)


class ClassifierChoice(Settings):
    """A classifier that any recipe's network may be tested with, an entry of classifiers.yaml.

    `classifier` is as in `Propagation`. `grid` has, for some of its settings, the values of which
    the best is taken on validation episodes. `label` is how tables call it.
    """

    label: Markup
    classifier: Annotated[str | dict[str, Any], BeforeValidator(_classifier)]
    grid: dict[str, Annotated[tuple[Any, ...], Field(min_length=2)]] = Field(default_factory=dict)


class RecipeSources(Settings):
    """The file recipes.yaml; its entries are partial recipes."""

    protocols: dict[str, dict[str, Any]]
    recipes: dict[str, dict[str, Any]]
