"""Stages that make what networks are trained and tested on."""

from epcore.plan.datasets import DataSet, SourceFile
from epcore.plan.scale_models import EpisodeSettings
from epcore.plan.stages import Stage


class FetchStage(Stage):
    """Find or download a source's files, and verify them."""

    stage_version: int = 1
    files: dict[str, SourceFile]


class DataStage(Stage):
    """Build a store."""

    stage_version: int = 4
    dataset: DataSet


class EpisodesStage(Stage, EpisodeSettings):
    """Sample episodes."""

    stage_version: int = 2
    episodes: int
    seed: int
