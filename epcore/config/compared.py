"""The file compared.yaml: compared methods."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from epcore.settings import Settings, check_named
from epcore.training.config import EpisodicTraining


def of_shot(settings: Any, shot: int) -> Any:
    """Settings in which each mapping such as {1-shot: 16, 5-shot: 18} is its value at a shot.

    A shot that is not listed has the value of the largest one.
    """
    if not isinstance(settings, dict):
        return settings
    matches = [re.fullmatch(r"([1-9]\d*)-shot", str(key)) for key in settings]
    shots = [int(match[1]) for match in matches if match]
    if shots and len(shots) == len(settings):
        return settings[f"{shot if shot in shots else max(shots)}-shot"]
    return {key: of_shot(value, shot) for key, value in settings.items()}


class TrainedMethod(Settings):
    """A method and how it is trained, if it is."""

    method: Annotated[dict[str, Any], AfterValidator(check_named)] = Field(
        description="the `name` of a method of epcore.methods, and its options"
    )
    training: EpisodicTraining | None = Field(
        default=None,
        description="how it is trained; without it each test episode tunes the pretrained network",
    )


class ComparedMethod(TrainedMethod):
    """An entry of compared.yaml: a network, how it is trained, and how it is tested.

    Any value in the file may be one for each shot, as in {1-shot: 16, 5-shot: 18}. Entries that
    differ in their test alone share their training.
    """

    description: str = Field(description="what it is, in a line")
    pretrained: str | None = Field(
        default=None,
        description="the recipe whose pretrained network it starts from; from random weights if "
        "there is none",
    )
    batch_statistics: bool = Field(
        default=False,
        description="whether BatchNorm takes the statistics of an episode's queries in tests, "
        "which tells each query about the others",
    )
    episodes: Annotated[int, Field(ge=2)] | None = Field(
        default=None,
        description="the most episodes of a test, the first ones of its protocol; all if there is "
        "none",
    )
    selected_on: Literal["val", "novel"] = Field(
        default="val", description="the classes on whose episodes the best epoch is chosen"
    )

    @model_validator(mode="after")
    def _something_to_test(self) -> "ComparedMethod":
        if self.training is None and self.pretrained is None:
            raise ValueError("without `training` it needs `pretrained`, a network to tune")
        return self


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
