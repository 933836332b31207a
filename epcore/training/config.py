"""The configs of the stages that make checkpoints."""

from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from epcore.data.config import AugmentationName
from epcore.evaluation.config import NetworkConfig, Propagation
from epcore.settings import StageConfig
from epcore.training.optimization import (
    EpisodicOptimization,
    Optimization,
)


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
    with_validation: bool = Field(
        default=False,
        exclude_if=lambda value: not value,
        description="whether validation classes are trained on like base classes; then the best "
        "epoch on their episodes is no honest choice",
    )
    mixup: PositiveFloat | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="trains on mixtures of images and of maps, whose shares come from the Beta "
        "distribution with this value twice; of a batch only a quarter is rotated then",
    )

    @model_validator(mode="after")
    def _rotations_to_tell(self) -> "Pretraining":
        if self.rotation_weight > 0 and not self.rotated_copies:
            raise ValueError("rotation_weight must be 0 without rotated_copies")
        if self.mixup and self.rotated_copies and self.batch_size < 4:
            raise ValueError("with mixup batch_size must be 4 or more: a quarter is rotated")
        return self

    @property
    def copies(self) -> int:
        """How many images a network sees of each image of a batch, but for mixup's quarter."""
        return 4 if self.rotated_copies and not self.mixup else 1

    @property
    def rotated_quarter(self) -> int:
        """With mixup, how many images of a batch are also seen in four rotations."""
        return self.batch_size // 4 if self.rotated_copies and self.mixup else 0

    @property
    def images_per_step(self) -> int:
        """How many images a network sees in a step."""
        return self.copies * self.batch_size + 4 * self.rotated_quarter


class Finetuning(Optimization):
    """Phase two: one episode of `way` classes a step; the shot is the checkpoint's."""

    episodes_per_epoch: PositiveInt = Field(description="steps of an epoch, an episode each")
    way: Annotated[int, Field(ge=2)] = Field(description="classes of a training episode")
    queries: PositiveInt = Field(description="query images of each class")
    class_weight: NonNegativeFloat = Field(description="weight of the loss over all base classes")
    class_input: Literal["features", "embeddings"] = Field(
        description="what the head over all base classes sees"
    )


class EpisodicTraining(EpisodicOptimization):
    """Training on episodes of base classes, `tasks` episodes in each step."""

    steps: PositiveInt = Field(description="of an epoch, which ends with a validation")
    tasks: PositiveInt = Field(description="episodes of a step")
    queries: PositiveInt = Field(description="query images of each class")
    way: Annotated[int, Field(ge=2)] = Field(description="classes of a training episode")
    shot: PositiveInt | None = Field(
        default=None,
        description="support images of each class in a training episode, as many as in the test "
        "unless given",
        exclude_if=lambda value: value is None,
    )
    unlabeled: PositiveInt | None = Field(
        default=None,
        description="unlabeled images of each class in a training episode; the best epoch is then "
        "chosen on validation episodes with 20 of each class",
        exclude_if=lambda value: value is None,
    )
    augmentation: tuple[AugmentationName, ...] = Field(
        default=(),
        exclude_if=lambda value: not value,
        description="how training images are changed at random",
    )


class SeededConfig(NetworkConfig):
    """Train a network from the draws of a seed."""

    seed: int


class TrainingConfig(SeededConfig):
    """Train a network as a recipe says."""

    propagation: Propagation
    augmentation: tuple[AugmentationName, ...]


class PretrainConfig(TrainingConfig):
    """Phase one."""

    stage_version: int = 2
    pretraining: Pretraining


class FinetuneConfig(TrainingConfig):
    """Phase two."""

    stage_version: int = 1
    shot: int
    finetuning: Finetuning


class SelectConfig(StageConfig):
    """Take the checkpoint of the best candidate on validation; the candidates are recipes."""

    stage_version: int = 1
    candidates: tuple[str, ...]


class MetaTrainConfig(SeededConfig):
    """Train a compared method on episodes, for tests with `shot` support images of each class."""

    stage_version: int = 5
    method: dict[str, Any]
    training: EpisodicTraining
    shot: int

    @property
    def episode(self) -> tuple[int, int, int]:
        """Classes of a training episode, and support and query images of each."""
        training = self.training
        shot = training.shot or self.shot
        return training.way, shot, training.queries
