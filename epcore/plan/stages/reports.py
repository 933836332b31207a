"""Stages that tell of a whole run."""

from epcore.plan.stages import Stage


class ReproductionStage(Stage):
    """Typeset the reproduction: what a scale says of itself, by name, and what it makes."""

    stage_version: int = 2
    scale: str
    seeds: tuple[int, ...]
    facts: dict[str, str]
    tables: tuple[str, ...]
    figures: tuple[str, ...]


class EnvironmentStage(Stage):
    """Sum up where jobs ran, from the metas that they wrote."""

    stage_version: int = 1
    title: str
    metas: tuple[str, ...]
