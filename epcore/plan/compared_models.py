"""The settings of the compared methods: the file compared.yaml."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveFloat, PositiveInt

from epcore.plan.load import suggest
from epcore.plan.partial import EXTENDS, PartOf
from epcore.plan.settings import Settings

# A file each; importing them would load torch.
METHODS = sorted(
    path.stem.replace("_", "-")
    for path in (Path(__file__).parents[1] / "compared").glob("[!_]*.py")
)


def _known(method: dict[str, Any]) -> dict[str, Any]:
    if method.get("name") not in METHODS:
        near = suggest(str(method.get("name")), METHODS).removeprefix("; ")
        raise ValueError(f"there is no such method ({near})")
    return method


Way = Annotated[int, Field(ge=2)]
T = TypeVar("T")
EachShot = Annotated[dict[PositiveInt, T], Field(min_length=1)]
OfShot = PositiveInt | EachShot[PositiveInt]
Number = TypeVar("Number", int, float)


def _of_shot(value: Number | dict[int, Number], shot: int) -> Number:
    """One number, or that of the shot; for shots that are not there, that of the largest."""
    return value.get(shot, value[max(value)]) if isinstance(value, dict) else value


class ClippedParts(Settings):
    """A limit for each part of the gradient by itself."""

    each: PositiveFloat | EachShot[PositiveFloat] = Field(
        description="largest absolute value of the gradient of a weight; one number, or one for "
        "each shot"
    )

    def of_shot(self, shot: int) -> "ClippedParts":
        """The limit of a shot."""
        return ClippedParts(each=_of_shot(self.each, shot))


class AdamSettings(Settings):
    """Adam, whose learning rate is halved now and then."""

    epochs: PositiveInt = Field(description="of a training")
    learning_rate: PositiveFloat = Field(description="in the first epoch")
    weight_decay: NonNegativeFloat = Field(description="of all parameters")
    halve_every: PositiveInt = Field(description="epochs after which the learning rate is halved")
    clip: PositiveFloat | ClippedParts | None = Field(
        default=None,
        description="largest norm of the gradient of all weights, or `each`, a limit of its parts",
    )


class EpisodicTraining(AdamSettings):
    """From random weights, on episodes of base classes: `tasks` of them in each step."""

    epochs: OfShot = Field(  # type: ignore[assignment]  # one number once `of_shot` was asked
        description="of a training; one number, or one for each shot"
    )
    steps: OfShot = Field(
        description="of an epoch, which ends with a validation; one number, or one for each shot"
    )
    tasks: OfShot = Field(description="episodes of a step; one number, or one for each shot")
    queries: OfShot = Field(
        description="query images of each class; one number, or one for each shot"
    )
    way: Way | EachShot[Way] = Field(
        description="classes of a training episode; one number, or one for each shot"
    )
    shot: OfShot | None = Field(
        default=None,
        description="support images of each class in a training episode, as many as in the test "
        "unless given; one number, or one for each shot",
        exclude_if=lambda value: value is None,
    )

    def of_shot(self, shot: int) -> "EpisodicTraining":
        """What is one number for each shot is that of a shot."""
        names = ("epochs", "steps", "tasks", "way", "shot", "queries")
        several = {name: getattr(self, name) for name in names}
        chosen = {name: _of_shot(value, shot) for name, value in several.items() if value}
        clip = self.clip.of_shot(shot) if isinstance(self.clip, ClippedParts) else self.clip
        return self.model_copy(update={**chosen, "clip": clip})


class ComparedMethod(Settings):
    """An entry of compared.yaml: a network, how it is trained, and how it is tested.

    Entries that differ in their test alone share their training.
    """

    description: str = Field(description="what it is, in a line")
    method: Annotated[dict[str, Any], AfterValidator(_known)] = Field(
        description="the `name` of a file of epcore.compared, and its options"
    )
    training: EpisodicTraining = Field(description="how it is trained")
    training_on: dict[str, EpisodicTraining] = Field(
        default_factory=dict,
        description="name of a data set -> what differs in a training on it; what a scale changes "
        "of `training` holds there too",
    )
    batch_statistics: bool = Field(
        default=False,
        description="whether BatchNorm takes the statistics of an episode's queries in tests, "
        "which tells each query about the others",
    )
    selected_on: Literal["val", "novel"] = Field(
        default="val", description="the classes on whose episodes the best epoch is chosen"
    )


ComparedPart = Annotated[dict[str, Any], PartOf(ComparedMethod, EXTENDS)]


class ComparedScale(Settings):
    """What a scale changes: of the training of all methods, then of those of a file's name."""

    training: Annotated[dict[str, Any], PartOf(EpisodicTraining)] = Field(
        default_factory=dict, description="settings of the training of all methods"
    )
    methods: dict[str, Annotated[dict[str, Any], PartOf(ComparedMethod)]] = Field(
        default_factory=dict, description="name of a method's file -> settings of it alone"
    )
    tables: tuple[str, ...] = Field(
        default=(),
        description="the tables whose rows of the literature show this run's numbers as well",
    )
