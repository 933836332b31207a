"""The configs of the stages of the analysis figures: the file figures.yaml at one scale."""

from collections.abc import Sequence
from functools import cached_property

from epcore.analysis.config import (
    DecisionBoundaryConfig,
    InterpolatedPairs,
    InterpolationConfig,
    InterpolationNetwork,
    TwoMoonsConfig,
)
from epcore.config.figures import FigureSettings, NetworkFigure
from epcore.config.load import merge, read_yaml
from epcore.data.config import Split
from epcore.errors import UserError
from epcore.plan import paths
from epcore.plan.figure_job import FigureJob
from epcore.plan.registry import Registry
from epcore.plan.run import Run
from epcore.plan.runs import Runs
from epcore.plan.tables import Cell, Tables
from epcore.report.figure_config import (
    AlphaCandidate,
    AlphaConfig,
    TableFigureCell,
    TableFigureConfig,
)
from epcore.settings import pick, validate

# The figures whose CSV files hold named numbers, on which claims may rest.
WITH_NUMBERS = ("two-moons", "decision-boundary", "interpolation")


class Figures:
    """The figures of a scale but plots and curves; methods named after one make its config."""

    def __init__(self, registry: Registry, runs: Runs, tables: Tables) -> None:
        self._registry, self._runs, self._tables = registry, runs, tables

    @cached_property
    def settings(self) -> FigureSettings:
        """The file figures.yaml, with what the scale changes."""
        config, changes = self._registry.config, self._registry.scale.figures
        location = f"{config.name}/figures.yaml" + (
            f", with {self._registry.scale_file}, figures" if changes else ""
        )
        merged = merge(read_yaml(config / "figures.yaml"), changes)
        settings = validate(FigureSettings, merged, location)
        self._check_networks(settings.alpha, "val", f"{location}, alpha", "alpha is chosen")
        self._check_networks(
            settings.interpolation, "novel", f"{location}, interpolation", "the figure is tested"
        )
        self._tables.check_table(settings.gap.table, f"{location}, gap, table")
        for name, figure in settings.of_tables.items():
            self._tables.check_table(figure.table, f"{location}, of-tables.{name}, table")
        return settings

    def _check_networks(
        self, figure: NetworkFigure, split: Split, location: str, what: str
    ) -> None:
        registry = self._registry
        pick(registry.backbones, figure.backbone, "backbone", location)
        self._tables.check_column(figure.column, f"{location}, column")
        actual = pick(registry.protocols, figure.protocol, "protocol", location).split
        if actual != split:
            raise UserError(
                f"{location}: protocol {figure.protocol!r} is of split {actual}",
                f"{what} on split {split}",
            )
        for recipe in figure.recipes:
            pick(dict.fromkeys(registry.recipes.names), recipe, "recipe", f"{location}, recipes")

    @cached_property
    def jobs(self) -> dict[str, FigureJob]:
        """The jobs of the figures that this scale has the runs of."""
        jobs: dict[str, FigureJob] = {}
        path = self._registry.path
        if runs := self.alpha_runs():
            title = "validation accuracy over both alphas"
            jobs["alpha"] = FigureJob("alpha", title, self.alpha(), self._of_networks(runs))
        jobs["two-moons"] = FigureJob(
            "two-moons",
            "embedding propagation of two moons",
            TwoMoonsConfig(settings=self.settings.two_moons),
        )
        jobs["decision-boundary"] = FigureJob(
            "decision-boundary",
            "boundaries of three classes in the plane",
            DecisionBoundaryConfig(settings=self.settings.decision_boundary),
        )
        if runs := self.interpolation_runs():
            title, inputs = "class probability between two images", self._of_networks(runs)
            jobs["interpolation"] = FigureJob("interpolation", title, self.interpolation(), inputs)
        for name, figure in self.settings.of_tables.items():
            if self._drawn(name):
                inputs = {
                    "table": [path(paths.TABLE_CSV, table=figure.table)],
                    "drawn_from": [path(paths.TABLE_TESTS, table=figure.table)],
                }
                jobs[name] = FigureJob(figure.kind, figure.title, self.of_table(name), inputs)
        return jobs

    def _of_networks(self, runs: list[Run]) -> dict[str, list[str]]:
        """Features of the runs, and the episodes, which are of one protocol."""
        return {
            "drawn_from": [self._runs.features(run) for run in runs],
            "episodes": [self._runs.path(paths.EPISODES, runs[0])],
        }

    def _drawn(self, name: str) -> list[Cell]:
        """The cells that a figure of a table draws, one a seed; none if the scale lacks one."""
        figure = self.settings.of_tables[name]
        cells = self._tables.cells_if_shown(figure.table)
        drawn = [cell for cell in cells if figure.draws(cell.block, cell.row, cell.column)]
        complete = figure.is_complete({cell.row.name: cell.row for cell in drawn}.values())
        return drawn if complete else []

    def alpha_runs(self) -> list[Run]:
        """The runs of the alpha search, recipe by recipe, if the scale has them."""
        return self._network_runs(self.settings.alpha, self._registry.seeds)

    def interpolation_runs(self) -> list[Run]:
        """The runs of both interpolated networks, of the first seed, if the scale has them."""
        return self._network_runs(self.settings.interpolation, self._registry.seeds[:1])

    def _network_runs(self, figure: NetworkFigure, seeds: Sequence[int]) -> list[Run]:
        scale = self._registry.scale
        dataset = scale.columns.get(figure.column)
        if dataset is None or figure.backbone not in scale.backbones:
            return []
        return [
            Run(dataset, figure.backbone, recipe, seed, figure.protocol)
            for recipe in figure.recipes
            for seed in seeds
        ]

    # -- stages -----------------------------------------------------------------------------------

    def alpha(self) -> AlphaConfig:
        figure, runs = self.settings.alpha, self.alpha_runs()
        candidates = (
            AlphaCandidate(
                features=tuple(self._runs.features(run) for run in runs if run.recipe == recipe),
                propagation=self._runs.evaluate(figure.backbone, recipe).propagation,
            )
            for recipe in figure.recipes
        )
        return AlphaConfig(
            candidates=tuple(candidates),
            label_alphas=figure.label_alphas,
            note=self._note(figure.column, figure.backbone),
        )

    def interpolation(self) -> InterpolationConfig:
        """The config of the stage `interpolation`, for scales that have its runs."""
        figure = self.settings.interpolation
        first, second = (
            InterpolationNetwork(
                name=run.recipe,
                label=label,
                features=self._runs.features(run),
                propagation=self._runs.evaluate(run.backbone, run.recipe).propagation,
            )
            for label, run in zip(figure.labels, self.interpolation_runs(), strict=True)
        )
        settings = figure.model_dump(include=set(InterpolatedPairs.model_fields))
        return InterpolationConfig(
            networks=(first, second),
            settings=InterpolatedPairs(**settings),
            note=self._note(figure.column, figure.backbone),
        )

    def of_table(self, name: str) -> TableFigureConfig:
        """The config of a figure of a table, where the scale has it."""
        registry, drawn = self._registry, self._drawn(name)
        shown = {
            (cell.block.name, cell.row.name, cell.column.name): TableFigureCell(
                block=cell.block.name,
                row=cell.row.name,
                column=cell.column.name,
                backbone=registry.sized(cell.run.backbone),
                dataset=registry.datasets[cell.run.dataset].caption,
                episodes=cell.column.heading,
                label=cell.row.label or cell.row.name,
                marks=cell.row.marks,
            )
            for cell in drawn
        }
        networks = {(cell.run.dataset, cell.run.backbone) for cell in drawn}
        first = drawn[0].run
        return TableFigureConfig(
            figure=self.settings.of_tables[name],
            cells=tuple(shown.values()),
            seeds=registry.seeds,
            note=registry.data_and_network(first.dataset, registry.sized(first.backbone))
            if len(networks) == 1
            else f"Scale {registry.scale_name}",
        )

    def _note(self, column: str, backbone: str) -> str:
        """What a figure's numbers are of."""
        registry = self._registry
        dataset = registry.scale.columns.get(column)
        return registry.data_and_network(dataset, registry.sized(backbone))
