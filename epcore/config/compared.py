"""The file compared.yaml: compared methods."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from epcore.settings import Settings, check_named
from epcore.training.config import EpisodicTraining


class ComparedMethod(Settings):
    """An entry of compared.yaml: a network, how it is trained, and how it is tested.

    Entries that differ in their test alone share their training.
    """

    description: str = Field(description="what it is, in a line")
    method: Annotated[dict[str, Any], AfterValidator(check_named)] = Field(
        description="the `name` of a method of epcore.methods, and its options"
    )
    pretrained: str | None = Field(
        default=None,
        description="the recipe whose pretrained network it starts from; from random weights if "
        "there is none",
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


class ComparedScale(Settings):
    """A scale's changes to the training of all methods, then to that of single methods."""

    training: dict[str, Any] = Field(
        default_factory=dict, description="settings of the training of all methods"
    )
    methods: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="name of a method's file -> settings of it alone"
    )
    tables: tuple[str, ...] = Field(
        default=(),
        description="the tables whose rows of the literature show this run's numbers as well",
    )
