"""One job by its names: its stage's config, its files, its command line."""

from collections.abc import Mapping
from inspect import signature
from operator import attrgetter
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from epcore.errors import UserError
from epcore.files import fingerprint
from epcore.outputs import paths_of
from epcore.plan import Plan
from epcore.plan.files import files_of, looked_up
from epcore.plan.load import validate
from epcore.plan.names import check_figure, check_names
from epcore.plan.registry import main_config
from epcore.plan.stages import config_text
from epcore.stages import NUMBERS, STAGES, Figure, Stage


def stage_config(plan: Plan, name: str, names: Mapping[str, Any]) -> str:
    """The config of a job's stage, as canonical JSON; nothing if it has none."""
    stage = STAGES[name]
    if stage.config is None:
        return ""
    asked = {each: names[each] for each in config_names(plan, stage)}
    asked |= {each: int(asked[each]) for each in NUMBERS if each in asked}
    return config_text(attrgetter(stage.plan)(plan)(**asked))


def config_names(plan: Plan, stage: Stage) -> tuple[str, ...]:
    """The names that the config of a stage is made of."""
    return tuple(signature(attrgetter(stage.plan)(plan)).parameters)


def command_of(plan: Plan, name: str, names: Mapping[str, Any]) -> list[str]:
    """The words behind `epcore <stage>` that say which job it is.

    With a digest of what the config says of the job: it re-runs the job when that changes, and
    tells a job that the config was edited since.
    """
    stage, words = STAGES[name], ["--scale", plan.registry.scale_name]
    for each in stage.names:
        values = names[each] if isinstance(names[each], (list, tuple)) else [names[each]]
        words += [f"--{each}", *map(str, values)]
    if stage.of_seeds:
        seeds = plan.registry.seeds if stage.of_seeds == "all" else plan.registry.seeds[:1]
        words += ["--seeds", *map(str, seeds)]
    if plan.registry.config != Path("config"):
        words += ["--settings", plan.registry.config.as_posix()]
    if text := stage_config(plan, name, names):
        words += ["--digest", _digest(text, plan, name, names)]
    return words


def _digest(config: str, plan: Plan, name: str, names: Mapping[str, Any]) -> str:
    """A digest of a stage's config, and of the results that the plan looks up for its job.

    The order of recipes.yaml, for example, decides which recipe a shared checkpoint is named after.
    Receipts of sources follow from the config of a data set.
    """
    found = looked_up(plan, name, names)
    files = sorted(
        str(path) for each in found if each != "sources" for path in paths_of(found, each)
    )
    return fingerprint(config, *(path for path in files if path.startswith("results/")))


def resolved(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a stage's `run()`, from those of its command line.

    Files that are not given are those of the job, which takes all of its names; otherwise those
    suffice that its config is made of. With `--config` nothing is looked up.

    Raises:
        UserError: if names or files are missing, or the config is not what the digest is of.
    """
    stage, given = STAGES[name], dict(arguments)
    config = given.pop("config", None)
    place = {key: given.pop(key) for key in stage.names}
    scale, settings, seeds, digest = (
        given.pop(key, None) for key in ("scale", "settings", "seeds", "digest")
    )
    if config is not None:
        given["stage"] = validate(_model(stage), config, "--config")
    elif stage.config is not None or _missing(stage, given):
        scale = scale or main_config(settings).scale
        plan = Plan(settings, scale, seeds)
        if "seed" in place and place["seed"] is None:
            place["seed"] = plan.registry.seeds[0]
        needed = stage.names if _missing(stage, given) else config_names(plan, stage)
        _check_given(name, [key for key in needed if place[key] is None])
        check_names(plan, place)
        if isinstance(stage.out, Figure) and not stage.names:
            check_figure(plan, name)
        if needed == stage.names:
            found = files_of(plan, name, place)
            given |= {key: file for key, file in found.items() if not given.get(key)}
        if stage.config is not None:
            text = stage_config(plan, name, place)
            if digest is not None and digest != _digest(text, plan, name, place):
                raise UserError(
                    f"{settings}/ was edited after this run had begun, and says something else of "
                    "this job now; run the same command again"
                )
            given["stage"] = _model(stage).model_validate_json(text)
    _check_given(name, _missing(stage, given))
    return given


def _model(stage: Stage) -> Any:
    """The model of its config."""
    return resolve_name(f"epcore.plan.stages.{stage.config}")


def _missing(stage: Stage, given: Mapping[str, Any]) -> list[str]:
    return [each.name for each in stage.files if each.required and not given.get(each.name)]


def _check_given(name: str, missing: list[str]) -> None:
    if missing:
        options = ", ".join(f"--{each}" for each in missing)
        raise UserError(f"{name}: {options} missing; `epcore {name} --help` says what they are")
