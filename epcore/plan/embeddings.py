"""The embeddings that a published table or figure waits for, although others show them.

An embedding takes seconds, too little for a job of a cluster by itself. Publishing waits for those
of all trainings below a table or figure that anything tests, so that each is made together with
its training.
"""

from collections.abc import Iterable

from epcore.plan import paths
from epcore.plan.plan import Plan
from epcore.plan.run import Run, TrainedNetwork


def of_table(plan: Plan, table: str) -> list[str]:
    """Feature files; a table of ImageNet-FS, which shares none, has no such."""
    return _tested(plan, _behind(plan, _runs(plan, [table])))


def of_figure(plan: Plan, figure: str) -> list[str]:
    """Feature files."""
    if figure == "gap":
        compared = [run for _, *both in plan.curves.gap_runs() for run in both]
        return _tested(plan, map(plan.runs.pretrained, compared))
    if figure in plan.curves.checkpoints:
        return _tested(plan, plan.curves.checkpoints[figure])
    if figure in plan.plots.settings.plots:
        return _tested(plan, _behind(plan, _runs(plan, plan.plots.tables(figure))))
    runs = {
        "ablation": lambda: _runs(plan, ["ablation"]),
        "alpha": plan.figures.alpha_runs,
        "interpolation": plan.figures.interpolation_runs,
    }
    return _tested(plan, _behind(plan, runs[figure]())) if figure in runs else []


def _runs(plan: Plan, tables: Iterable[str]) -> list[Run]:
    known = plan.registry.tables
    return [at.run for table in tables if table in known for at in plan.tables.runs(table)]


def _behind(plan: Plan, runs: Iterable[Run]) -> list[TrainedNetwork]:
    return [plan.runs.checkpoint(run) for run in runs]


def _tested(plan: Plan, checkpoints: Iterable[TrainedNetwork]) -> list[str]:
    """Of the pretraining and the fine-tuning behind each, as far as any are tested.

    Features, and what is known of the base classes where a classifier may take it.
    """
    embedded = [each for each in checkpoints if not plan.runs.compared.has(each.recipe)]
    both = [each for found in embedded for each in (plan.runs.pretrained(found), found)]
    tested = [each for each in both if each in plan.tested.checkpoints]
    files = [plan.runs.path(paths.FEATURES, each) for each in tested]
    files += [
        plan.runs.path(paths.BASE_CLASSES, each)
        for each in tested
        if each in plan.tested.classified
    ]
    return list(dict.fromkeys(files))
