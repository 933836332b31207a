"""Stages that make features and scores from checkpoints."""

from typing import Any

from pydantic import Field

from epcore.plan.recipe_models import Propagation
from epcore.plan.settings import Settings
from epcore.plan.stages import ComputingStage, NetworkStage


class EmbedStage(NetworkStage):
    """Compute features."""

    stage_version: int = 2


class BaseClassesStage(NetworkStage):
    """Find the mean feature of the base images and the weights of the base classes."""

    stage_version: int = 2


class ClassifierTest(Settings):
    """A classifier that is tested on given features; `grid` is that of `ClassifierChoice`."""

    propagation: Propagation
    grid: dict[str, tuple[Any, ...]] = Field(default={}, exclude_if=lambda value: not value)


class EvaluateClassifiersStage(ComputingStage):
    """Classify the queries of episodes with several entries of classifiers.yaml."""

    stage_version: int = 1
    classifiers: dict[str, ClassifierTest]


class EvaluateStage(ComputingStage, ClassifierTest):
    """Classify the queries of episodes as a recipe's own test does; nothing is chosen."""

    stage_version: int = 4


class MetaTestStage(NetworkStage):
    """Test a compared method on frozen episodes."""

    stage_version: int = 4
    method: dict[str, Any]
    way: int
    batch_statistics: bool
