"""Plans that tests share, changes to their config, and what printed commands say by them."""

import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import yaml

from epcore.plan import Plan, paths
from epcore.settings import StageConfig, config_text

CONFIG = Path(__file__).parents[1] / "config"
DELETED = object()
FOLDER = tempfile.TemporaryDirectory()


@cache
def plan_of(scale: str = "demo", seeds: int | tuple[int, ...] | None = None) -> Plan:
    """For tests that change neither the config nor the code that reads it.

    The scale `both` is the demo with the main table whole: with both of the paper's data sets.
    """
    if scale == "both":
        config = Path(FOLDER.name, "config")
        shutil.copytree(CONFIG, config, dirs_exist_ok=True)
        (config / "scales/both.yaml").write_text("extends: demo\nparts: {main: null}\n", "utf-8")
    else:
        config = CONFIG
    return Plan(config, scale, seeds)


def put(config, file, path, value):
    """Sets one key of a YAML file, or takes it away if the value is DELETED.

    An entry of a list is named by its `name` or its number.
    """
    content = yaml.load((config / file).read_text(encoding="utf-8"), yaml.CSafeLoader)
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
    text = yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False)
    (config / file).write_text(text, encoding="utf-8")


def _key(place, key):
    """The key itself or, in a list, the number of its entry."""
    if isinstance(place, dict):
        return key
    return int(key) if key.isdigit() else [entry["name"] for entry in place].index(key)


def flat(settings, at=""):
    """Nested settings as path -> value."""
    found = {}
    for key, value in settings.items():
        found |= flat(value, f"{at}{key}.") if isinstance(value, dict) else {f"{at}{key}": value}
    return found


def command(plan: Plan, stage: str, **names: str | int) -> list[str]:
    """The words behind `epcore` of a job of the small pipeline, as its rule has them."""
    place = {"scale": plan.registry.scale_name, "seed": 0, **names}

    def path(pattern: str, **more: object) -> str:
        return pattern.format(**{**place, **more})

    def config(build: Callable[..., StageConfig], *arguments: str) -> list[str]:
        return ["--config", config_text(build(*(place[name] for name in arguments)))]

    data = ["--data", path(paths.DATA)] if stage != "data" else []
    network = ("backbone", "recipe")
    if stage == "data":
        words = [*config(plan.data.build, "dataset"), "--out", path(paths.DATA)]
    elif stage == "episodes":
        words = [*config(plan.data.episodes, "protocol"), "--out", path(paths.EPISODES)]
    elif stage == "pretrain":
        words = [
            *config(plan.runs.pretrain, "dataset", *network, "seed"),
            *("--episodes", path(paths.EPISODES, protocol="val-5way-5shot")),
            *("--out", path(paths.PRETRAIN)),
        ]
    elif stage == "finetune":
        words = [
            *config(plan.runs.finetune, *network, "seed", "shot"),
            *("--episodes", path(paths.EPISODES, protocol=f"val-5way-{place['shot']}shot")),
            *("--checkpoint", path(paths.PRETRAIN), "--out", path(paths.FINETUNE)),
        ]
    else:
        build, out = {
            "embed": (plan.runs.embed, paths.FEATURES),
            "base-classes": (plan.runs.base_classes, paths.BASE_CLASSES),
        }[stage]
        weights = path(paths.CHECKPOINT)
        words = [*config(build, *network), "--weights", weights, "--out", path(out)]
    return [stage, *data, *words]
