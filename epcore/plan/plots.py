"""Result plots: which numbers of tables they draw; the file plots.yaml at one scale."""

from functools import cache, cached_property

from epcore.config.figures import Axis, PlotSettings
from epcore.config.load import read
from epcore.config.scale import Protocol
from epcore.plan import paths
from epcore.plan.figure_job import FigureJob
from epcore.plan.registry import Registry
from epcore.plan.tables import Cell, Tables
from epcore.report.figure_config import PlotConfig, PlotPoint


class Plots:
    """The plots of a scale's tables."""

    def __init__(self, registry: Registry, tables: Tables) -> None:
        self._registry, self._tables = registry, tables

    @cached_property
    def settings(self) -> PlotSettings:
        """The file plots.yaml."""
        settings = read(self._registry.config, "plots.yaml", PlotSettings)
        location = f"{self._registry.config.name}/plots.yaml"
        for series in settings.series:
            self._registry.recipes.check(series.recipe, f"{location}, series")
        for name, plot in settings.plots.items():
            for series in plot.series or ():
                self._registry.recipes.check(series.recipe, f"{location}, {name}, series")
            for table in plot.tables:
                self._tables.check_table(table, f"{location}, {name}, tables")
        return settings

    @cached_property
    def jobs(self) -> dict[str, FigureJob]:
        """The jobs of the plots that this scale has the numbers of."""
        return {
            name: FigureJob(
                "plot",
                f"accuracy over {plot.label}",
                self.plot(name),
                {
                    "tables": [
                        self._registry.path(paths.TABLE_CSV, table=t) for t in self.tables(name)
                    ]
                },
            )
            for name, plot in self.settings.plots.items()
            if self._points(name)
        }

    def tables(self, name: str) -> list[str]:
        """The tables of this scale that a plot reads."""
        return [table for table in self.settings.plots[name].tables if table in self._tables.shown]

    def plot(self, plot: str) -> PlotConfig:
        """The config of the stage `plot`."""
        registry, points = self._registry, self._points(plot)
        settings = self.settings.plots[plot]
        datasets = dict.fromkeys(point.dataset for point in points)
        titles = {c: registry.datasets[registry.scale.columns[c]].caption for c in datasets}
        data = "; ".join(f"{column}: {title}" for column, title in titles.items())
        note = f"Scale {registry.scale_name}. {data}. {settings.note}"
        return PlotConfig(
            label=settings.label,
            series=tuple(series.label for series in settings.series or self.settings.series),
            points=tuple(points),
            note=note.rstrip(),
        )

    @cache  # noqa: B019 - a plan lives as long as the program
    def _points(self, name: str) -> list[PlotPoint]:
        """Every number of ours that a plot draws, in the order of its tables."""
        plot = self.settings.plots[name]
        series = {line.recipe: line.label for line in plot.series or self.settings.series}
        points: dict[tuple[str, str, str, str, int], PlotPoint] = {}
        for table in self.tables(name):
            for cell in self._tables.cells(table):
                if point := self._point(plot.axis, series, table, cell):
                    points.setdefault((*point.panel, point.series, point.x), point)
        positions: dict[tuple[str, str, str], set[int]] = {}
        for point in points.values():
            positions.setdefault(point.panel, set()).add(point.x)
        return [point for point in points.values() if len(positions[point.panel]) > 1]

    def _point(
        self, axis: Axis, series: dict[str, str], table: str, cell: Cell
    ) -> PlotPoint | None:
        """The point of a cell, or None if the plot does not draw the cell."""
        protocol = self._registry.protocols[cell.run.protocol]
        partly = protocol.labeled is not None or protocol.dirichlet is not None
        beside = axis != "unlabeled" and protocol.unlabeled > 0
        if cell.run.recipe not in series or partly or beside:
            return None
        baseline = cell.baseline.recipe if cell.baseline else cell.run.recipe
        return PlotPoint(
            backbone=self._registry.sized(cell.run.backbone),
            dataset=cell.column.dataset,
            episodes=_episodes(protocol, axis),
            series=series[cell.run.recipe],
            x=getattr(protocol, axis),
            table=table,
            block=cell.block.name,
            row=cell.row.name,
            column=cell.column.name,
            baseline=series.get(baseline)
            if len(series) == 2 and baseline != cell.run.recipe
            else None,
        )


def _episodes(protocol: Protocol, axis: Axis) -> str:
    """What the episodes of a panel have in common."""
    words = {"way": f"{protocol.way}-way", "shot": f"{protocol.shot}-shot"}
    return " ".join(text for name, text in words.items() if name != axis)
