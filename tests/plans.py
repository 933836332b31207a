"""Plans of the config as it stands, each made once in a process."""

from functools import cache
from pathlib import Path

from epcore.plan import Plan

CONFIG = Path(__file__).parents[1] / "config"


@cache
def plan_of(scale: str = "demo", seeds: int | tuple[int, ...] | None = None) -> Plan:
    """For tests that change neither the config nor the code that reads it."""
    return Plan(CONFIG, scale, seeds)
