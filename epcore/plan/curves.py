"""Training curves: which trainings their figures show, and how far apart two recipes are."""

from functools import cached_property

from epcore.plan import paths
from epcore.plan.figure_job import FigureJob
from epcore.plan.figures import Figures
from epcore.plan.imagenet_fs import ImageNetFs
from epcore.plan.registry import Registry
from epcore.plan.run import Run, TrainedNetwork
from epcore.plan.runs import Runs
from epcore.plan.tables import Cell, Tables
from epcore.plan.tested import Tested
from epcore.report.figure_config import CurvesConfig, GapConfig, GapPair

# A page of the paper holds so many rows of curves, and a caption.
RECIPES_PER_FIGURE = 6


class Curves:
    """The figures that are drawn from the curves of a scale's trainings."""

    def __init__(
        self,
        registry: Registry,
        runs: Runs,
        tables: Tables,
        figures: Figures,
        tested: Tested,
        imagenet_fs: ImageNetFs | None,
    ) -> None:
        self._registry, self._runs, self._imagenet_fs = registry, runs, imagenet_fs
        self._tables, self._figures, self._tested = tables, figures, tested

    @cached_property
    def jobs(self) -> dict[str, FigureJob]:
        """The jobs of the figures that this scale has the trainings of."""
        jobs = {
            name: FigureJob("curves", stage.note, stage, {"drawn_from": _files(stage)})
            for name, stage in self.stages.items()
        }
        if gap := self.gap():
            title = "how far apart rows are while they train"
            curves = [
                paths.curve(c) for pair in gap.pairs for c in (pair.checkpoint, pair.baseline)
            ]
            jobs["gap"] = FigureJob("gap", title, gap, {"drawn_from": curves})
        return jobs

    @cached_property
    def stages(self) -> dict[str, CurvesConfig]:
        """Figure -> the config of its stage `curves`: the trainings behind the tested networks.

        A figure is of one data set and backbone, a row a recipe; there are several if the recipes
        are many. Recipes that share their pretraining show it each.
        """
        recipes = [*self._registry.recipes.names, *self._registry.recipes.compared]
        seeds = self._registry.seeds
        tested: dict[tuple[str, str], list[TrainedNetwork]] = {}
        for network in self._tested.networks:
            tested.setdefault((network.dataset, network.backbone), []).append(network)
        stages = {}
        for (dataset, backbone), networks in tested.items():
            networks.sort(key=lambda n: (recipes.index(n.recipe), seeds.index(n.seed), n.shot))
            rows = list(dict.fromkeys(network.recipe for network in networks))
            for part, start in enumerate(range(0, len(rows), RECIPES_PER_FIGURE), start=1):
                name = f"curves-{dataset}-{backbone}" + (f"-{part}" if part > 1 else "")
                shown = rows[start : start + RECIPES_PER_FIGURE]
                trainings = dict.fromkeys(
                    training
                    for network in networks
                    if network.recipe in shown
                    for training in self._runs.trainings(network)
                )
                stages[name] = CurvesConfig(
                    trainings=tuple(trainings), note=self._note(networks[0])
                )
        fs = self._imagenet_fs
        return stages | (fs.curves(self._tested.imagenet_fs) if fs else {})

    # -- the gap between two recipes --------------------------------------------------------------

    def gap(self) -> GapConfig | None:
        """The config of the stage `gap`, if the scale has its table: the rows of the first column.

        A row is compared with the one that it names.
        """
        settings = self._figures.settings.gap
        cells = [
            (cell, cell.baseline)
            for cell in self._tables.cells_if_shown(settings.table)
            if cell.baseline and cell.column is self._tables.table(settings.table).columns[0]
        ]
        if not cells:
            return None
        return GapConfig(
            pairs=tuple(self._pair(cell, baseline) for cell, baseline in cells),
            label=settings.label,
            note=self._note(cells[0][0].run),
        )

    def _pair(self, cell: Cell, baseline: Run) -> GapPair:
        run, recipes = cell.run, self._registry.recipes
        checkpoint, other_checkpoint = (
            self._runs.path(paths.CHECKPOINT, self._runs.pretrained(trained))
            for trained in (run, baseline)
        )
        return GapPair(
            panel=cell.block.label,
            line=f"{recipes.resolve(run.recipe, run.backbone).pretraining.epochs} epochs",
            seed=run.seed,
            checkpoint=checkpoint,
            baseline=other_checkpoint,
        )

    def _note(self, of: Run | TrainedNetwork) -> str:
        """What the curves are of."""
        registry = self._registry
        return registry.data_and_network(of.dataset, registry.sized(of.backbone))


def _files(stage: CurvesConfig) -> list[str]:
    """What a figure of curves is made from, as far as rules make it.

    The rule of generators does not list the curves beside them: a method has one for each K.
    """
    curves = (
        paths.curve(training.checkpoint) for training in stage.trainings if not training.model
    )
    return sorted({*curves, *(paths.meta(training.checkpoint) for training in stage.trainings)})
