"""Plans that tests share, and what printed commands say by them."""

import shlex
from functools import cache
from pathlib import Path

from epcore.job import resolved
from epcore.options import parser
from epcore.plan import Plan

CONFIG = Path(__file__).parents[1] / "config"


@cache
def plan_of(scale: str = "demo", seeds: int | tuple[int, ...] | None = None) -> Plan:
    """For tests that change neither the config nor the code that reads it."""
    return Plan(CONFIG, scale, seeds)


class Commands:
    """What the printed commands of many jobs say; their plan and parser are made once.

    While it is in use, the files of the config do not change.
    """

    def __init__(self, monkeypatch) -> None:
        made = cache(Plan)
        monkeypatch.setattr(
            "epcore.job.Plan",
            lambda config, scale, seeds: made(config, scale, seeds and tuple(seeds)),
        )
        self.parser = parser()

    def arguments(self, command: str) -> tuple[str, dict]:
        """(stage, arguments of its `run()`) of the words behind `epcore`."""
        given = vars(self.parser.parse_args(shlex.split(command)))
        stage = given.pop("command")
        for key in ("gpus", "allow_cpu", "require_gpu"):
            given.pop(key, None)
        return stage, resolved(stage, given)
