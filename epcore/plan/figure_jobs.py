"""What each figure is made from, for the one rule that draws them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from epcore.plan import paths
from epcore.plan.curves import Curves
from epcore.plan.figures import Figures
from epcore.plan.plots import Plots
from epcore.plan.registry import Registry
from epcore.plan.run import Run
from epcore.plan.runs import Runs
from epcore.plan.tables import Tables
from epcore.settings import StageConfig

Inputs = dict[str, Sequence[str]]


@dataclass(frozen=True)
class FigureJob:
    """The job that draws a figure.

    stage: the stage that draws it. title: what the report calls it. config: makes the stage's
    config. inputs: its files; `drawn_from` are those that the config names, others are named after
    the parameter of the stage's `run()`.
    """

    stage: str
    title: str
    config: Callable[[], StageConfig]
    inputs: Inputs


class FigureJobs:
    """The job of each figure that a scale has the runs of."""

    def __init__(
        self,
        registry: Registry,
        runs: Runs,
        tables: Tables,
        figures: Figures,
        plots: Plots,
        curves: Curves,
    ) -> None:
        self._registry, self._runs, self._tables = registry, runs, tables
        self._figures, self._plots, self._curves = figures, plots, curves

    def job(self, figure: str) -> FigureJob:
        """The job that draws a figure."""
        if figure in self._plots.covered:
            return self._plot(figure)
        if figure in self._curves.stages:
            return self._of_curves(figure)
        if figure in self._figures.settings.of_tables:
            return self._of_table(figure)
        return FigureJob(figure, *self._single(figure))

    def _of_table(self, figure: str) -> FigureJob:
        settings = self._figures.settings.of_tables[figure]
        inputs: Inputs = {
            "table": [self._registry.path(paths.TABLE_CSV, table=settings.table)],
            "drawn_from": [self._registry.path(paths.TABLE_TESTS, table=settings.table)],
        }
        build = partial(self._figures.of_table, figure)
        return FigureJob("table-figure", settings.title, build, inputs)

    def _plot(self, figure: str) -> FigureJob:
        title = f"accuracy over {self._plots.settings.plots[figure].label}"
        tables = [
            self._registry.path(paths.TABLE_CSV, table=name) for name in self._plots.tables(figure)
        ]
        return FigureJob("plot", title, lambda: self._plots.plot(figure), {"tables": tables})

    def _of_curves(self, figure: str) -> FigureJob:
        stage, files = self._curves.stages[figure], self._curves.files(figure)
        return FigureJob("curves", stage.note, lambda: stage, {"drawn_from": files})

    def _single(self, figure: str) -> tuple[str, Callable[[], StageConfig], Inputs]:
        """Title, what makes the config, and inputs of a figure that has a stage to itself."""
        figures = self._figures
        match figure:
            case "two-moons":
                return "embedding propagation of two moons", figures.two_moons, {}
            case "decision-boundary":
                title = "boundaries of three classes in the plane"
                return title, figures.decision_boundary, {}
            case "alpha":
                title, inputs = "validation accuracy over both alphas", figures.alpha_runs()
                return title, figures.alpha, self._of_networks(inputs)
            case "interpolation":
                title, inputs = "class probability between two images", figures.interpolation_runs()
                return title, figures.interpolation, self._of_networks(inputs)
            case "gap":
                pairs = self._curves.gap().pairs
                curves = [paths.curve(c) for p in pairs for c in (p.checkpoint, p.baseline)]
                title = "how far apart rows are while they train"
                return title, self._curves.gap, {"drawn_from": curves}
        raise KeyError(figure)

    def _of_networks(self, runs: list[Run]) -> Inputs:
        """Features of the runs, and the episodes, which are of one protocol."""
        return {
            "drawn_from": [self._runs.features(run) for run in runs],
            "episodes": [self._runs.path(paths.EPISODES, runs[0])],
        }
