"""The settings of optimizers and their schedules."""

from typing import Annotated, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from epcore.settings import Probability, Settings


class Plateau(Settings):
    """Lowers the learning rate after more than `patience` epochs without a gain."""

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


class ClippedParts(Settings):
    """A limit for each part of the gradient by itself."""

    each: PositiveFloat = Field(description="largest absolute value of the gradient of a weight")


class EpisodicOptimization(Settings):
    """Adam, or SGD with Nesterov momentum, whose learning rate falls in steps."""

    epochs: PositiveInt = Field(description="of a training")
    learning_rate: PositiveFloat = Field(description="in the first epoch")
    momentum: Probability | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="trains by SGD with this Nesterov momentum, instead of by Adam",
    )
    weight_decay: NonNegativeFloat = Field(description="of all parameters")
    halve_every: PositiveInt | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="epochs after which the learning rate is halved; never unless given",
    )
    falls: dict[PositiveInt, PositiveFloat] = Field(
        default_factory=dict,
        exclude_if=lambda value: not value,
        description="number of epochs -> the part of the first learning rate that is left after "
        "them",
    )
    clip: PositiveFloat | ClippedParts | None = Field(
        default=None,
        description="largest norm of the gradient of all weights, or `each`, a limit of its parts",
    )

    def rate(self, epoch: int) -> float:
        """The part of the first learning rate that is left in an epoch, which counts from 0."""
        past = [number for number in self.falls if number <= epoch]
        halved: float = 0.5 ** (epoch // self.halve_every) if self.halve_every else 1.0
        return halved * (self.falls[max(past)] if past else 1.0)
