"""Which files a job reads and makes, from the names that say which job it is.

The grammar is that of `epcore.plan.paths`, as in the rules of the workflow; so a stage needs no
more than names, typed by hand as well as by a rule.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from epcore.plan import paths
from epcore.plan.figures import Figures
from epcore.plan.imagenet_fs import queries_of
from epcore.plan.plan import Plan
from epcore.plan.run import Run
from epcore.plan.runs import phase_of

TEMPLATE = "workflow/report/reproduction.tex"

# Option of the stage -> file, or files, or folder.
Files = dict[str, Any]


def files_of(plan: Plan, stage: str, names: Mapping[str, Any]) -> Files:
    """What the options of a stage are for a job of the plan.

    Args:
        plan: the scale.
        stage: its name.
        names: the values of the stage's `names`, such as data set, backbone, recipe and seed.
    """
    place = {"scale": plan.registry.scale_name, **names}
    return _OF[stage](plan, place)


def _at(pattern: str, place: Mapping[str, Any], **more: Any) -> Path:
    return Path(pattern.format(**{**place, **more}))


def _data_of(place: Mapping[str, Any]) -> Files:
    return {"data": _at(paths.STORE, place).parent}


def _data(plan: Plan, place: Mapping[str, Any]) -> Files:
    sources = plan.data.inputs(place["dataset"]).get("sources", [])
    return {"sources": list(map(Path, sources)), "out": _at(paths.STORE, place).parent}


def _contact_sheet(plan: Plan, place: Mapping[str, Any]) -> Files:
    return {**_data_of(place), "out": _at(paths.CONTACT_SHEET, place)}


def _episodes(plan: Plan, place: Mapping[str, Any]) -> Files:
    return {**_data_of(place), "out": _at(paths.EPISODES, place)}


def _pretrain(plan: Plan, place: Mapping[str, Any]) -> Files:
    episodes = _at(paths.EPISODES, place, protocol="val-5way-5shot")
    return {**_data_of(place), "episodes": episodes, "out": _at(paths.PRETRAIN, place)}


def _finetune(plan: Plan, place: Mapping[str, Any]) -> Files:
    owner = plan.runs.pretraining_recipe(place["backbone"], place["recipe"])
    return {
        **_data_of(place),
        "episodes": _at(paths.EPISODES, place, protocol=f"val-5way-{place['shot']}shot"),
        "checkpoint": _at(paths.PRETRAIN, place, recipe=owner),
        "out": _at(paths.FINETUNE, place),
    }


def _select(plan: Plan, place: Mapping[str, Any]) -> Files:
    owners = plan.runs.candidates(place["backbone"], place["recipe"], phase_of(place["checkpoint"]))
    found = [_at(paths.CHECKPOINT, place, recipe=owner) for owner in owners]
    return {"checkpoints": found, "out": _at(paths.CHECKPOINT, place)}


def _embed(plan: Plan, place: Mapping[str, Any]) -> Files:
    weights = _at(paths.CHECKPOINT, place)
    return {**_data_of(place), "weights": weights, "out": _at(paths.FEATURES, place)}


def _base_classes(plan: Plan, place: Mapping[str, Any]) -> Files:
    weights = _at(paths.CHECKPOINT, place)
    return {**_data_of(place), "weights": weights, "out": _at(paths.BASE_CLASSES, place)}


def _evaluate(plan: Plan, place: Mapping[str, Any]) -> Files:
    """Of one protocol or several."""
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


def _meta_train(plan: Plan, place: Mapping[str, Any]) -> Files:
    protocol = plan.compared.validation(place["recipe"], place["shot"])
    return {
        **_data_of(place),
        "episodes": _at(paths.EPISODES, place, protocol=protocol),
        "out": _at(paths.META_TRAINED, place),
    }


def _meta_test(plan: Plan, place: Mapping[str, Any]) -> Files:
    network = plan.compared.checkpoint(Run(*(place[each.name] for each in fields(Run))))
    return {
        **_data_of(place),
        "weights": Path(plan.runs.path(paths.CHECKPOINT, network)),
        "episodes": _at(paths.EPISODES, place),
        "out": _at(paths.SCORES, place),
    }


def _table(plan: Plan, place: Mapping[str, Any]) -> Files:
    printed = plan.tables.printed_files(place["table"])
    return {
        **dict(zip(("paper", "rerun"), printed, strict=False)),
        "out": _at(paths.TABLE_CSV, place),
    }


def _claims(plan: Plan, place: Mapping[str, Any]) -> Files:
    return {"out": _at(paths.CLAIMS, place)}


def _reproduction(plan: Plan, place: Mapping[str, Any]) -> Files:
    tables = [_at(paths.TABLE_CSV, place, table=name) for name in plan.main_tables]
    tracked = {"footprint": _at(paths.CO2, place)} if plan.registry.footprint.tracking else {}
    return {
        "template": plan.registry.config.parent / TEMPLATE,
        "claims": _at(paths.CLAIMS, place),
        "tables": tables,
        "out": _at(paths.REPRODUCTION, place),
        **tracked,
    }


def _plot(plan: Plan, place: Mapping[str, Any]) -> Files:
    tables = [_at(paths.TABLE_CSV, place, table=name) for name in plan.plots.tables(place["plot"])]
    return {"tables": tables, "out": _at(paths.FIGURE, place, figure=place["plot"])}


def _curves(plan: Plan, place: Mapping[str, Any]) -> Files:
    return {"out": _at(paths.FIGURE, place, figure=place["curves"])}


def _ablation(plan: Plan, place: Mapping[str, Any]) -> Files:
    return {"paper": plan.registry.config / "paper" / "abl.csv", **_figure("ablation")(plan, place)}


def _figure(name: str) -> Callable[[Plan, Mapping[str, Any]], Files]:
    return lambda plan, place: {"out": _at(paths.FIGURE, place, figure=name)}


def _tested_figure(
    name: str, runs: Callable[[Figures], list[Run]]
) -> Callable[[Plan, Mapping[str, Any]], Files]:
    """A figure of networks on the episodes of one protocol."""

    def files(plan: Plan, place: Mapping[str, Any]) -> Files:
        episodes = plan.runs.path(paths.EPISODES, runs(plan.figures)[0])
        return {"episodes": Path(episodes), **_figure(name)(plan, place)}

    return files


def _environment(plan: Plan, place: Mapping[str, Any]) -> Files:
    return {"out": _at(paths.ENVIRONMENT, place)}


# -- ImageNet-FS -----------------------------------------------------------------------------------


def _pair(place: Mapping[str, Any]) -> Files:
    queries = _at(paths.STORE, place, dataset=queries_of(place["dataset"]))
    return {**_data_of(place), "queries": queries.parent}


def _exemplars(plan: Plan, place: Mapping[str, Any]) -> Files:
    return {**_pair(place), "out": _at(paths.EXEMPLAR_FOLDER, place)}


def _classifier(plan: Plan, place: Mapping[str, Any]) -> Files:
    return {**_pair(place), "out": _at(paths.CLASSIFIER, place)}


def _features(plan: Plan, place: Mapping[str, Any]) -> Files:
    out = _at(paths.IMAGE_FEATURES, place).parent
    return {**_pair(place), "checkpoint": _at(paths.CLASSIFIER, place), "out": out}


def _weighing(place: Mapping[str, Any], exemplars: list[str]) -> Files:
    return {
        **_pair(place),
        "features": _at(paths.IMAGE_FEATURES, place).parent,
        "checkpoint": _at(paths.CLASSIFIER, place),
        "exemplars": [_at(pattern, place) for pattern in exemplars],
    }


def _generator(plan: Plan, place: Mapping[str, Any]) -> Files:
    exemplars = plan.with_imagenet_fs.validation_exemplars(place["method"])
    return {**_weighing(place, exemplars), "out": _at(paths.GENERATOR, place)}


def _trials(plan: Plan, place: Mapping[str, Any]) -> Files:
    fs = plan.with_imagenet_fs
    owner = fs.generator_method(place["method"])
    return {
        **_weighing(place, fs.exemplar_files("novel")),
        "generator": _at(paths.GENERATOR, place, method=owner),
        "out": _at(paths.TRIAL_FOLDER, place),
    }


_OF: dict[str, Callable[[Plan, Mapping[str, Any]], Files]] = {
    "data": _data,
    "contact-sheet": _contact_sheet,
    "episodes": _episodes,
    "pretrain": _pretrain,
    "finetune": _finetune,
    "select": _select,
    "embed": _embed,
    "base-classes": _base_classes,
    "evaluate": _evaluate,
    "meta-train": _meta_train,
    "meta-test": _meta_test,
    "table": _table,
    "claims": _claims,
    "reproduction": _reproduction,
    "ablation": _ablation,
    "alpha": _tested_figure("alpha", Figures.alpha_runs),
    "interpolation": _tested_figure("interpolation", Figures.interpolation_runs),
    "two-moons": _figure("two-moons"),
    "decision-boundary": _figure("decision-boundary"),
    "plot": _plot,
    "curves": _curves,
    "gap": _figure("gap"),
    "speed": _figure("speed"),
    "per-episode": _figure("per-episode"),
    "environment": _environment,
    "imagenet-fs-exemplars": _exemplars,
    "imagenet-fs-classifier": _classifier,
    "imagenet-fs-features": _features,
    "imagenet-fs-generator": _generator,
    "imagenet-fs-evaluate": _trials,
}
