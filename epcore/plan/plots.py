"""Result plots and training curves of recipes: which numbers and trainings they draw."""

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from epcore.plan import paths
from epcore.plan.figure_plan import FigurePlan
from epcore.plan.load import pick, read_yaml, validate
from epcore.plan.models import Block, Column, Protocol, Row
from epcore.plan.registry import check_name, protocol_of
from epcore.plan.settings import Settings
from epcore.plan.stages import (
    GapPair,
    GapStage,
    PlotPoint,
    PlotStage,
    Training,
    told,
)

Axis = Literal["shot", "way", "unlabeled"]
# A page of the paper holds so many rows of curves, and a caption.
RECIPES_PER_FIGURE = 6


class Plot(Settings):
    """Accuracy over `axis`, from the numbers of `tables`; `label` is the axis's, `note` below."""

    axis: Axis
    label: str
    tables: Annotated[tuple[str, ...], Field(min_length=1)]
    note: str = ""


class Series(Settings):
    """A recipe, and how the legend calls it."""

    recipe: str
    label: str


class Plots(Settings):
    """The file plots.yaml; of two `series` the difference is drawn too."""

    series: Annotated[tuple[Series, ...], Field(min_length=1, max_length=2)]
    plots: dict[str, Plot]


class PlotPlan(FigurePlan):
    """Tables, and the figures that are drawn from their numbers or from trainings."""

    @cached_property
    def plots(self) -> Plots:
        """The file plots.yaml."""
        where = f"{self.config.name}/plots.yaml"
        plots: Plots = validate(Plots, read_yaml(self.config / "plots.yaml"), where)
        for series in plots.series:
            pick(dict.fromkeys(self.recipes), series.recipe, "recipe", f"{where}, series")
        for name, plot in plots.plots.items():
            check_name(name, where)
            for table in plot.tables:
                self.check_table(table, f"{where}, {name}, tables")
        return plots

    def plot_tables(self, name: str) -> list[str]:
        """The tables of this scale that a plot reads."""
        return [table for table in self.plots.plots[name].tables if table in self.tables]

    def plot(self, name: str) -> str:
        plot, points = self.plots.plots[name], self._points(name)
        shown = dict.fromkeys(point.dataset for point in points)
        titles = {column: self.datasets[self.scale.columns[column]].caption for column in shown}
        data = "; ".join(f"{column}: {title}" for column, title in titles.items())
        note = f"Scale {self.scale_name}. {data}. {plot.note}"
        return told(
            PlotStage(
                label=plot.label,
                series=tuple(series.label for series in self.plots.series),
                points=tuple(points),
                note=note.rstrip(),
            )
        )

    def _points(self, name: str) -> list[PlotPoint]:
        """Every number of ours that a plot draws, in the order of its tables."""
        plot = self.plots.plots[name]
        series = {series.recipe: series.label for series in self.plots.series}
        points: dict[tuple[str, str, str, str, int], PlotPoint] = {}
        for table in self.plot_tables(name):
            rows = {(b.name, row.name): row for b in self.table(table).blocks for row in b.rows}
            backbones = {block.name: block.backbone for block in self.table(table).blocks}
            columns = {column.name: column for column in self.table(table).columns}
            for cell in self.cells(table):
                row, column = rows[cell.block, cell.row], columns[cell.column]
                protocol = self.protocols[protocol_of(row, column)]
                partly = protocol.labeled is not None
                if row.recipe not in series or partly or _beside(protocol, plot.axis):
                    continue
                other = rows[cell.block, row.baseline].recipe if row.baseline else None
                point = PlotPoint(
                    backbone=self._sized(str(backbones[cell.block])),
                    dataset=column.dataset,
                    episodes=_episodes(protocol, plot.axis),
                    series=series[row.recipe],
                    x=getattr(protocol, plot.axis),
                    table=table,
                    block=cell.block,
                    row=cell.row,
                    column=cell.column,
                    baseline=series.get(str(other)) if other != row.recipe else None,
                )
                points.setdefault((*point.panel, point.series, point.x), point)
        positions: dict[tuple[str, str, str], set[int]] = {}
        for point in points.values():
            positions.setdefault(point.panel, set()).add(point.x)
        return [point for point in points.values() if len(positions[point.panel]) > 1]

    @cached_property
    def recipe_curves(self) -> dict[str, tuple[Training, ...]]:
        """Figure -> the trainings that it shows: of one data set and backbone, a row a recipe.

        Recipes that share their pretraining show it each.
        """
        tested: dict[tuple[str, str], dict[str, set[str]]] = {}
        for dataset, backbone, recipe, checkpoint in self._tested:
            tested.setdefault((dataset, backbone), {}).setdefault(recipe, set()).add(checkpoint)
        figures = {}
        for (dataset, backbone), recipes in tested.items():
            ordered = [recipe for recipe in self.recipes if recipe in recipes]
            for part, start in enumerate(range(0, len(ordered), RECIPES_PER_FIGURE), start=1):
                name = f"curves-{dataset}-{backbone}" + (f"-{part}" if part > 1 else "")
                figures[name] = tuple(
                    training
                    for recipe in ordered[start : start + RECIPES_PER_FIGURE]
                    for seed in self.seeds
                    if (names := self._trained(dataset, backbone, recipe, recipes[recipe], seed))
                    for training in self.trainings(dataset, backbone, recipe, names, seed)
                )
        return figures

    def _trained(
        self, dataset: str, backbone: str, recipe: str, checkpoints: set[str], seed: int
    ) -> set[str]:
        """Those of the checkpoints that are trained with a seed."""
        if seed == self.seeds[0]:
            return checkpoints
        return {
            name for name in checkpoints if (dataset, backbone, recipe, name) in self._in_tables
        }

    def gap_pairs(self) -> list[GapPair]:
        """Every row of the figure's table that is compared with another, and that one."""
        name = self.figures.gap.table
        self.check_table(name, f"{self.config.name}/figures.yaml, gap, table")
        if name not in self.covered_tables:
            return []
        column = self.table(name).columns[0]
        return [
            self._gap_pair(block, row, rows[row.baseline], column, seed)
            for block in self.table(name).blocks
            for rows in [{row.name: row for row in block.rows}]
            for row in block.rows
            if row.baseline is not None
            for seed in self.seeds
        ]

    def _gap_pair(self, block: Block, row: Row, other: Row, column: Column, seed: int) -> GapPair:
        backbone, dataset = str(block.backbone), self.scale.columns[column.dataset]
        one, two = (
            paths.PRETRAIN.format(
                **self._place(
                    dataset, backbone, self.pretraining_recipe(backbone, str(each.recipe)), seed
                )
            )
            for each in (row, other)
        )
        epochs = self.recipe(str(row.recipe), backbone).pretraining.epochs
        return GapPair(
            panel=block.label, line=f"{epochs} epochs", seed=seed, checkpoint=one, baseline=two
        )

    def gap(self) -> str:
        """Of a scale that has its table."""
        pairs = self.gap_pairs()
        dataset, backbone = pairs[0].checkpoint.split("/")[3:5]
        return told(
            GapStage(
                pairs=tuple(pairs),
                label=self.figures.gap.label,
                note=f"Scale {self.scale_name}: {self.datasets[dataset].caption}, "
                f"{self._sized(backbone)}",
            )
        )

    @cached_property
    def trained_files(self) -> list[str]:
        """The checkpoint of every training of the curves, pretraining first."""
        trained = {t.checkpoint for trainings in self.recipe_curves.values() for t in trainings}
        return sorted(trained, key=lambda path: (not path.endswith("pretrain.pt"), path))

    @cached_property
    def tested_files(self) -> list[str]:
        """The scores of every test of the tables."""
        cells = [cell for table in self.covered_tables for cell in self.cells(table)]
        return sorted({cell.scores for cell in cells})

    def description(self) -> dict[str, Any]:
        """What the report says of this scale."""
        columns = self.scale.columns.items()
        return {
            "scale": self.scale_name,
            "note": self.scale.note,
            "comparable": self.scale.comparable,
            "columns": {name: self.datasets[dataset].caption for name, dataset in columns},
            "backbones": [self._sized(backbone) for backbone in self.scale.backbones],
            "episodes": self.scale.episodes.novel,
            "seeds": ", ".join(map(str, self.seeds)),
            "precision": self.scale.precision,
        }

    @property
    def covered_plots(self) -> list[str]:
        """The plots that this scale has the numbers of."""
        return [name for name in self.plots.plots if self._points(name)]


def _beside(protocol: Protocol, axis: Axis) -> bool:
    """Whether unlabeled images are added where they are not what is asked about."""
    return axis != "unlabeled" and protocol.unlabeled > 0


def _episodes(protocol: Protocol, axis: Axis) -> str:
    """What the episodes of a panel have in common."""
    named = {"way": f"{protocol.way}-way", "shot": f"{protocol.shot}-shot"}
    return " ".join(text for name, text in named.items() if name != axis)
