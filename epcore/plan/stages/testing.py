"""Stages that make features and scores from checkpoints."""

from typing import Any

from pydantic import Field

from epcore.plan.recipe_models import Propagation
from epcore.plan.stages import ComputingStage, NetworkStage


class EmbedStage(NetworkStage):
    """Compute features."""

    stage_version: int = 2


class BaseClassesStage(NetworkStage):
    """Find the mean feature of the base images and the weights of the base classes."""

    stage_version: int = 2


class EvaluateStage(ComputingStage):
    """Classify the queries of episodes; `grid` is that of `ClassifierChoice`."""

    stage_version: int = 4
    propagation: Propagation
    grid: dict[str, tuple[Any, ...]] = Field(default={}, exclude_if=lambda value: not value)


class MetaTestStage(NetworkStage):
    """Test a compared method on frozen episodes."""

    stage_version: int = 4
    method: dict[str, Any]
    way: int
    batch_statistics: bool
