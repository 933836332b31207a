"""Result plots: which numbers of tables they draw; the file plots.yaml at one scale."""

from functools import cached_property

from epcore.config.figures import Axis, PlotSettings
from epcore.config.load import read
from epcore.config.scale import Protocol
from epcore.plan.checks import check_name
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
        where = f"{self._registry.config.name}/plots.yaml"
        for series in settings.series:
            self._registry.recipes.check(series.recipe, f"{where}, series")
        for name, plot in settings.plots.items():
            check_name(name, where)
            for series in plot.series or ():
                self._registry.recipes.check(series.recipe, f"{where}, {name}, series")
            for table in plot.tables:
                self._registry.tables.check_table(table, f"{where}, {name}, tables")
        return settings

    @property
    def covered(self) -> list[str]:
        """The plots that this scale has the numbers of."""
        return [name for name in self.settings.plots if self._points(name)]

    def tables(self, name: str) -> list[str]:
        """The tables of this scale that a plot reads."""
        return [
            table
            for table in self.settings.plots[name].tables
            if table in self._registry.tables.shown
        ]

    def plot(self, plot: str) -> PlotConfig:
        """The config of the stage `plot`."""
        registry, points = self._registry, self._points(plot)
        drawn = self.settings.plots[plot]
        shown = dict.fromkeys(point.dataset for point in points)
        titles = {c: registry.datasets[registry.scale.columns[c]].caption for c in shown}
        data = "; ".join(f"{column}: {title}" for column, title in titles.items())
        note = f"Scale {registry.scale_name}. {data}. {drawn.note}"
        return PlotConfig(
            label=drawn.label,
            series=tuple(series.label for series in drawn.series or self.settings.series),
            points=tuple(points),
            note=note.rstrip(),
        )

    def _points(self, name: str) -> list[PlotPoint]:
        """Every number of ours that a plot draws, in the order of its tables."""
        plot = self.settings.plots[name]
        series = {each.recipe: each.label for each in plot.series or self.settings.series}
        points: dict[tuple[str, str, str, str, int], PlotPoint] = {}
        for table in self.tables(name):
            for at in self._tables.cells(table):
                if point := self._point(plot.axis, series, table, at):
                    points.setdefault((*point.panel, point.series, point.x), point)
        positions: dict[tuple[str, str, str], set[int]] = {}
        for point in points.values():
            positions.setdefault(point.panel, set()).add(point.x)
        return [point for point in points.values() if len(positions[point.panel]) > 1]

    def _point(self, axis: Axis, series: dict[str, str], table: str, at: Cell) -> PlotPoint | None:
        """A number of a table, if it is of a series and differs in nothing but what is drawn."""
        protocol = self._registry.protocols[at.run.protocol]
        partly = protocol.labeled is not None or protocol.dirichlet is not None
        if at.run.recipe not in series or partly or _beside(protocol, axis):
            return None
        other = at.baseline.recipe if at.baseline else at.run.recipe
        return PlotPoint(
            backbone=self._registry.sized(at.run.backbone),
            dataset=at.column.dataset,
            episodes=_episodes(protocol, axis),
            series=series[at.run.recipe],
            x=getattr(protocol, axis),
            table=table,
            block=at.block.name,
            row=at.row.name,
            column=at.column.name,
            baseline=series.get(other) if len(series) == 2 and other != at.run.recipe else None,
        )


def _beside(protocol: Protocol, axis: Axis) -> bool:
    """Whether unlabeled images are added where they are not what is asked about."""
    return axis != "unlabeled" and protocol.unlabeled > 0


def _episodes(protocol: Protocol, axis: Axis) -> str:
    """What the episodes of a panel have in common."""
    named = {"way": f"{protocol.way}-way", "shot": f"{protocol.shot}-shot"}
    return " ".join(text for name, text in named.items() if name != axis)
