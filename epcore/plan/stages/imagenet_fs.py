"""Stages of ImageNet-FS."""

from typing import Literal

from epcore.plan.imagenet_fs_models import (
    ClassifierTraining,
    Generator,
    GeneratorTraining,
    WeightPropagation,
)
from epcore.plan.stages import ComputingStage, NetworkStage, Stage


class ExemplarsStage(Stage):
    """Draw the exemplars of novel classes, for every K, split and trial."""

    stage_version: int = 1
    shots: tuple[int, ...]
    trials: dict[Literal["val", "novel"], int]
    seed: int


class ClassifierStage(NetworkStage):
    """Train the cosine classifier."""

    stage_version: int = 2
    training: ClassifierTraining
    seed: int


class ImageFeaturesStage(NetworkStage):
    """Compute the features of every image of a data set."""

    stage_version: int = 1


class GeneratorStage(ComputingStage):
    """Train generators of class weights, one for each of the `shots`.

    `propagation` is that of training; its `step` matters at test only and is not part of it.
    """

    stage_version: int = 1
    generator: Generator
    training: GeneratorTraining
    propagation: WeightPropagation | None
    shots: tuple[int, ...]
    seed: int


class TrialsStage(ComputingStage):
    """Test generators of class weights on frozen exemplars; `step_sizes` has one for each K."""

    stage_version: int = 2
    generator: Generator
    propagation: WeightPropagation | None
    shots: tuple[int, ...]
    step_sizes: tuple[float, ...]
    prior: float
