"""Which files a job reads and makes, from the names that say which job it is.

Patterns are those of `epcore.stages`, in the grammar of `epcore.plan.paths` that the rules of the
workflow have too; so a stage needs no more than names, typed by hand as well as by a rule.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from epcore.plan import paths
from epcore.plan.plan import Plan
from epcore.plan.run import Run
from epcore.plan.runs import phase_of
from epcore.stages import STAGES

TEMPLATE = "workflow/report/reproduction.tex"

# Option of the stage -> file, or files, or folder.
Files = dict[str, Any]
Place = Mapping[str, Any]


def files_of(plan: Plan, stage: str, names: Mapping[str, Any]) -> Files:
    """What the options of a stage are for a job of the plan.

    Args:
        plan: the scale.
        stage: its name.
        names: the values of the stage's `names`, such as data set, backbone, recipe and seed.
    """
    place = {"scale": plan.registry.scale_name, **names}
    found: Files = {
        option.name: _at(option.pattern, place)
        for option in STAGES[stage].files
        if option.pattern and not option.many
    }
    return found | looked_up(plan, stage, names)


def looked_up(plan: Plan, stage: str, names: Mapping[str, Any]) -> Files:
    """Those of `files_of` that the plan must be asked for, as names alone do not say them."""
    if stage not in _LOOKED_UP:
        return {}
    return _LOOKED_UP[stage](plan, {"scale": plan.registry.scale_name, **names})


def _at(pattern: str, place: Place, **more: Any) -> Path:
    return Path(pattern.format(**{**place, **more}))


# -- what the plan knows ---------------------------------------------------------------------------


def _data(plan: Plan, place: Place) -> Files:
    sources = plan.data.inputs(place["dataset"]).get("sources", [])
    return {"sources": list(map(Path, sources))}


def _finetune(plan: Plan, place: Place) -> Files:
    owner = plan.runs.pretraining_recipe(place["backbone"], place["recipe"])
    return {"checkpoint": _at(paths.PRETRAIN, place, recipe=owner)}


def _select(plan: Plan, place: Place) -> Files:
    owners = plan.runs.candidates(place["backbone"], place["recipe"], phase_of(place["checkpoint"]))
    return {"checkpoints": [_at(paths.CHECKPOINT, place, recipe=owner) for owner in owners]}


def _evaluate(plan: Plan, place: Place) -> Files:
    """The files of tests of one protocol or several."""
    protocols = place["protocol"]
    run = Run(place["dataset"], place["backbone"], place["recipe"], place["seed"], protocols[0])
    tested = [replace(run, protocol=protocol) for protocol in protocols]
    of_each = (plan.runs.base, plan.runs.validation)
    base, validation = ([Path(file) for file in map(of, tested) if file] for of in of_each)
    return {
        "base": base,
        "validation": validation,
        "features": [Path(plan.runs.features(each)) for each in tested],
        "episodes": [_at(paths.EPISODES, place, protocol=protocol) for protocol in protocols],
        "out": [_at(paths.SCORES, place, protocol=protocol) for protocol in protocols],
    }


def _meta_train(plan: Plan, place: Place) -> Files:
    protocol = plan.compared.validation(place["recipe"], place["shot"])
    return {"episodes": _at(paths.EPISODES, place, protocol=protocol)}


def _meta_test(plan: Plan, place: Place) -> Files:
    network = plan.compared.checkpoint(Run(*(place[each.name] for each in fields(Run))))
    return {"weights": Path(plan.runs.path(paths.CHECKPOINT, network))}


def _table(plan: Plan, place: Place) -> Files:
    printed = plan.tables.printed_files(place["table"])
    return dict(zip(("paper", "rerun"), printed, strict=False))


def _reproduction(plan: Plan, place: Place) -> Files:
    tracked = {"footprint": _at(paths.CO2, place)} if plan.registry.footprint.tracking else {}
    return {
        "template": plan.registry.config.parent / TEMPLATE,
        "tables": [_at(paths.TABLE_CSV, place, table=name) for name in plan.main_tables],
        **tracked,
    }


def _ablation(plan: Plan, place: Place) -> Files:
    return {"paper": plan.registry.config / "paper" / "abl.csv"}


def _alpha(plan: Plan, place: Place) -> Files:
    return {"episodes": Path(plan.runs.path(paths.EPISODES, plan.figures.alpha_runs()[0]))}


def _interpolation(plan: Plan, place: Place) -> Files:
    return {"episodes": Path(plan.runs.path(paths.EPISODES, plan.figures.interpolation_runs()[0]))}


def _plot(plan: Plan, place: Place) -> Files:
    names = plan.plots.tables(place["plot"])
    return {"tables": [_at(paths.TABLE_CSV, place, table=name) for name in names]}


def _generator(plan: Plan, place: Place) -> Files:
    exemplars = plan.with_imagenet_fs.validation_exemplars(place["method"])
    return {"exemplars": [_at(pattern, place) for pattern in exemplars]}


def _trials(plan: Plan, place: Place) -> Files:
    fs = plan.with_imagenet_fs
    return {
        "exemplars": [_at(pattern, place) for pattern in fs.exemplar_files("novel")],
        "generator": _at(paths.GENERATOR, place, method=fs.generator_method(place["method"])),
    }


_LOOKED_UP: dict[str, Callable[[Plan, Place], Files]] = {
    "data": _data,
    "finetune": _finetune,
    "select": _select,
    "evaluate": _evaluate,
    "meta-train": _meta_train,
    "meta-test": _meta_test,
    "table": _table,
    "reproduction": _reproduction,
    "ablation": _ablation,
    "alpha": _alpha,
    "interpolation": _interpolation,
    "plot": _plot,
    "imagenet-fs-generator": _generator,
    "imagenet-fs-evaluate": _trials,
}
