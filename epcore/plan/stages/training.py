"""Stages that make checkpoints, and what other stages are told of a training."""

from typing import Any, cast

from epcore.plan import paths
from epcore.plan.compared_models import EpisodicTraining
from epcore.plan.recipe_models import AugmentationName, Finetuning, Pretraining, Propagation
from epcore.plan.settings import Settings
from epcore.plan.stages import NetworkStage, Stage


class TrainingStage(NetworkStage):
    """Train a network."""

    seed: int
    propagation: Propagation
    augmentation: tuple[AugmentationName, ...]


class PretrainStage(TrainingStage):
    """Phase one."""

    stage_version: int = 2
    pretraining: Pretraining


class FinetuneStage(TrainingStage):
    """Phase two."""

    stage_version: int = 1
    shot: int
    finetuning: Finetuning


class SelectStage(Stage):
    """Take the checkpoint of the best candidate on validation; the candidates are recipes."""

    stage_version: int = 1
    candidates: tuple[str, ...]


class MetaTrainStage(NetworkStage):
    """Train a compared method on episodes, for tests with `shot` support images of each class.

    What is one number for each shot in `training` is that of `shot`.
    """

    stage_version: int = 5
    method: dict[str, Any]
    training: EpisodicTraining
    shot: int
    seed: int

    @property
    def episode(self) -> tuple[int, int, int]:
        """Classes of a training episode, and support and query images of each."""
        training = self.training
        shot = training.shot or self.shot
        return cast("tuple[int, int, int]", (training.way, shot, training.queries))

    @property
    def epochs(self) -> int:
        """Epochs of the training, at its shot."""
        return cast("int", self.training.epochs)

    @property
    def steps(self) -> int:
        """Steps of an epoch, at its shot."""
        return cast("int", self.training.steps)

    @property
    def tasks(self) -> int:
        """Episodes of a step."""
        return cast("int", self.training.tasks)


class Training(Settings):
    """One training of a recipe, which another one may have named (`trained_as`).

    model: of a checkpoint that holds several, the one that it trained.
    """

    seed: int
    recipe: str
    phase: str
    trained_as: str
    checkpoint: str
    model: str = ""

    @property
    def files(self) -> tuple[str, str]:
        """Its curve, and the meta that says which epoch was kept."""
        return paths.curve(self.checkpoint, self.model), paths.meta(self.checkpoint)

    @property
    def ledger(self) -> str:
        """That of its scale, which tells of every attempt at it."""
        return paths.LEDGER.format(scale="".join(self.checkpoint.split("/")[1:2]))
