"""The embeddings that a published table or figure waits for, although others show them.

An embedding takes seconds, too little for a job of a cluster by itself. Publishing waits for those
of all trainings below a table or figure that anything tests, so that each is made together with
its training.
"""

from collections.abc import Iterable

from epcore.plan import paths
from epcore.plan.plan import Plan


def of_table(plan: Plan, table: str) -> list[str]:
    """Feature files; a table of ImageNet-FS, which shares none, has no such."""
    return _tested(plan, _cells(plan, [table] if table in plan.tables else []))


def of_figure(plan: Plan, figure: str) -> list[str]:
    """Feature files."""
    runs = {"alpha": plan.alpha_runs, "interpolation": plan.interpolation_runs}
    if figure in runs:
        return _tested(plan, [plan.checkpoint_of(*run) for run in runs[figure]()])
    if figure == "gap":
        return _tested(plan, [c for p in plan.gap_pairs() for c in (p.checkpoint, p.baseline)])
    if figure in plan.curves:
        return _tested(plan, [training.checkpoint for training in plan.curves[figure]])
    plotted = plan.plot_tables(figure) if figure in plan.plots.plots else []
    return _tested(plan, _cells(plan, ["ablation"] if figure == "ablation" else plotted))


def _cells(plan: Plan, tables: Iterable[str]) -> list[str]:
    """The meta files of the checkpoints that tables test."""
    return [cell.checkpoint_meta for table in tables for cell in plan.cells(table)]


def _tested(plan: Plan, checkpoints: Iterable[str]) -> list[str]:
    """Features of the pretraining and the fine-tuning behind each, as far as any are tested."""
    found: dict[str, None] = {}
    for path in checkpoints:
        _, _, kind, dataset, *rest = path.split("/")
        if kind == "models":
            backbone, recipe, seed, file = rest
            pretrained = (plan.pretraining_recipe(backbone, recipe), "pretrain")
            for owner, name in (pretrained, (recipe, file.split(".")[0])):
                if plan.is_tested(dataset, backbone, owner, name):
                    place = {"dataset": dataset, "backbone": backbone, "recipe": owner}
                    place |= {"scale": plan.scale_name, "seed": seed[1:], "checkpoint": name}
                    found[paths.FEATURES.format(**place)] = None
    return list(found)
