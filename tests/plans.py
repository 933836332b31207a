"""Plans that tests share, changes to their config, and what printed commands say by them."""

import shlex
from functools import cache
from pathlib import Path

import yaml

from epcore.job import resolved
from epcore.options import parser
from epcore.plan import Plan

CONFIG = Path(__file__).parents[1] / "config"
DELETED = object()


@cache
def plan_of(scale: str = "demo", seeds: int | tuple[int, ...] | None = None) -> Plan:
    """For tests that change neither the config nor the code that reads it."""
    return Plan(CONFIG, scale, seeds)


def put(config, file, path, value):
    """Sets one key of a YAML file, or takes it away if the value is DELETED.

    An entry of a list is named by its `name` or its number.
    """
    content = yaml.safe_load((config / file).read_text(encoding="utf-8"))
    *above, last = path.split("/")
    place = content
    for key in above:
        if isinstance(place, dict):
            place.setdefault(key, {})
        place = place[_key(place, key)]
    if value is DELETED:
        del place[_key(place, last)]
    else:
        place[_key(place, last)] = value
    (config / file).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def _key(place, key):
    """The key itself or, in a list, the number of its entry."""
    if isinstance(place, dict):
        return key
    return int(key) if key.isdigit() else [entry["name"] for entry in place].index(key)


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
