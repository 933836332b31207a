"""Whether the names that say which job it is are known, for stages that are typed by hand."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from epcore.plan.load import pick
from epcore.plan.plan import Plan

Known = Callable[[Plan], Mapping[str, Any]]


def _shots(plan: Plan) -> dict[str, None]:
    """Those that a fine-tuning has validation episodes of."""
    found = (re.fullmatch(r"val-5way-(\d+)shot", name) for name in plan.registry.protocols)
    return dict.fromkeys(each[1] for each in found if each)


def _checkpoints(plan: Plan) -> dict[str, None]:
    return dict.fromkeys(["pretrain", *(f"finetune-{shot}shot" for shot in _shots(plan))])


# Name -> what it is, and where the plan has all of them. Others are parts of file names.
KNOWN: dict[str, tuple[str, Known]] = {
    "dataset": ("data set", lambda plan: plan.registry.datasets),
    "protocol": ("protocol", lambda plan: plan.registry.protocols),
    "backbone": ("backbone", lambda plan: plan.registry.scale.backbones),
    "table": ("table", lambda plan: plan.registry.tables.shown),
    "network": ("network", lambda plan: dict.fromkeys(plan.with_imagenet_fs.networks)),
    "plot": ("figure of plots.yaml", lambda plan: plan.plots.settings.plots),
    "curves": ("figure of curves", lambda plan: plan.curves.stages),
    "shot": ("shot of a fine-tuning", _shots),
    "checkpoint": ("checkpoint", _checkpoints),
    "method": ("method", lambda plan: plan.with_imagenet_fs.methods),
}


def check_names(plan: Plan, names: Mapping[str, Any]) -> None:
    """Raises `UserError` that says which option names nothing, and the nearest known name."""
    where = f"at scale {plan.registry.scale_name}"
    if names.get("recipe") is not None:
        plan.registry.recipes.check(names["recipe"], f"--recipe {where}")
    for name, value in names.items():
        if name in KNOWN and value is not None:
            what, known = KNOWN[name]
            for each in value if isinstance(value, list) else [value]:
                pick(known(plan), str(each), what, f"--{name} {where}")


def check_figure(plan: Plan, figure: str) -> None:
    """Raises `UserError` unless the scale has the runs of a figure."""
    drawn = dict.fromkeys(plan.covered_figures)
    pick(drawn, figure, "figure", f"scale {plan.registry.scale_name}")
