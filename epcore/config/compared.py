"""The file compared.yaml: compared methods."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from epcore.settings import Settings, check_named
from epcore.training.config import EpisodicTraining
from epcore.training.optimization import value_of_shot


def check_method(method: dict[str, Any]) -> dict[str, Any]:
    """A method's settings; `ValueError` without its name, or for a mapping that is not of shots."""
    check_named(method)
    for name, value in method.items():
        shots = value if isinstance(value, dict) else {1: value}
        if not shots or any(not isinstance(shot, int) or shot < 1 for shot in shots):
            raise ValueError(
                f"{name}: give one value, or one for each shot, as in {{1: 0.3, 5: 0.2}}"
            )
    return method


class TrainedMethod(Settings):
    """A method and how it is trained."""

    method: Annotated[dict[str, Any], AfterValidator(check_method)] = Field(
        description="the `name` of a method of epcore.methods, and its options, each one value or "
        "one for each shot"
    )
    training: EpisodicTraining = Field(description="how it is trained")

    def options(self, shot: int) -> dict[str, Any]:
        """The method's `name` and its options with a shot."""
        return {name: value_of_shot(value, shot) for name, value in self.method.items()}

    @property
    def shots(self) -> set[int]:
        """The shots that options differ between; 1 if they do not."""
        return {1}.union(*(value for value in self.method.values() if isinstance(value, dict)))


class ComparedMethod(TrainedMethod):
    """An entry of compared.yaml: a network, how it is trained, and how it is tested.

    Entries that differ in their test alone share their training.
    """

    description: str = Field(description="what it is, in a line")
    pretrained: str | None = Field(
        default=None,
        description="the recipe whose pretrained network it starts from; from random weights if "
        "there is none",
    )
    datasets: dict[str, TrainedMethod] = Field(
        default_factory=dict,
        description="name of a data set -> what differs there of `method` and `training`; what a "
        "scale changes of them holds there too",
    )
    batch_statistics: bool = Field(
        default=False,
        description="whether BatchNorm takes the statistics of an episode's queries in tests, "
        "which tells each query about the others",
    )
    selected_on: Literal["val", "novel"] = Field(
        default="val", description="the classes on whose episodes the best epoch is chosen"
    )

    def for_dataset(self, dataset: str) -> TrainedMethod:
        """The method and its training on a data set."""
        return self.datasets.get(dataset, self)


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
