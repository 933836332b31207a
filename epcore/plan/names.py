"""Whether the names that say which job it is are known, for stages that are typed by hand."""

from collections.abc import Callable, Mapping
from typing import Any

from epcore.plan.load import pick
from epcore.plan.plan import Plan

Known = Callable[[Plan], Mapping[str, Any]]

# Name -> what it is, and where the plan has all of them. Others are parts of file names.
KNOWN: dict[str, tuple[str, Known]] = {
    "dataset": ("data set", lambda plan: plan.registry.datasets),
    "protocol": ("protocol", lambda plan: plan.registry.protocols),
    "backbone": ("backbone", lambda plan: plan.registry.scale.backbones),
    "table": ("table", lambda plan: plan.tables_by_name),
    "network": ("network", lambda plan: dict.fromkeys(plan.with_imagenet_fs.networks)),
    "plot": ("figure of plots.yaml", lambda plan: plan.plots.settings.plots),
    "curves": ("figure of curves", lambda plan: plan.curves.stages),
    "method": ("method", lambda plan: plan.with_imagenet_fs.methods),
}


def check_names(plan: Plan, names: Mapping[str, Any]) -> None:
    """Raises `UserError` that says which option names nothing, and the nearest known name."""
    if names.get("recipe") is not None:
        plan.registry.check_recipe(names["recipe"], "--recipe")
    for name, value in names.items():
        if name in KNOWN and value is not None:
            what, known = KNOWN[name]
            for each in value if isinstance(value, list) else [value]:
                pick(known(plan), each, what, f"--{name}")


def check_figure(plan: Plan, figure: str) -> None:
    """Raises `UserError` unless the scale has the runs of a figure."""
    drawn = dict.fromkeys(plan.covered_figures)
    pick(drawn, figure, "figure", f"scale {plan.registry.scale_name}")
