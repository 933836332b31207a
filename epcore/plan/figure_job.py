"""What the one rule that draws figures is told of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from epcore.settings import StageConfig


@dataclass(frozen=True)
class FigureJob:
    """The job that draws a figure.

    stage: the stage that draws it. title: what the report calls it. config: the stage's. inputs:
    its files; `drawn_from` are those that the config names, others are named after the parameter
    of the stage's `run()`.
    """

    stage: str
    title: str
    config: StageConfig
    inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
