"""Result plots and training curves of recipes: which numbers and trainings they draw."""

import re
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from epcore.plan import paths
from epcore.plan.figure_plan import FigurePlan
from epcore.plan.load import pick, read_yaml, validate
from epcore.plan.models import Protocol
from epcore.plan.registry import check_name, protocol_of
from epcore.plan.settings import Settings
from epcore.plan.stages import (
    STAGE_VERSIONS,
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
                stage_version=STAGE_VERSIONS["plot"],
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
                other = rows[cell.block, row.against].recipe if row.against else None
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
                    against=series.get(str(other)) if other != row.recipe else None,
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
                    for training in self._trainings(
                        dataset, backbone, recipe, recipes[recipe], seed
                    )
                )
        return figures

    def _trainings(
        self, dataset: str, backbone: str, recipe: str, checkpoints: set[str], seed: int
    ) -> list[Training]:
        """A recipe's pretraining, then its fine-tunings from the fewest shots on."""
        shots = [re.fullmatch(r"finetune-(\d+)shot", name) for name in checkpoints]
        steps = [("pretrain", "pretraining", self.pretrained_as(backbone, recipe))]
        steps += [
            (f"finetune-{shot}shot", f"fine-tuning, {shot}-shot", recipe)
            for shot in sorted(int(found[1]) for found in shots if found)
        ]
        return [
            Training(
                seed=seed,
                recipe=recipe,
                phase=phase,
                trained_as=owner,
                checkpoint=paths.CHECKPOINT.format(
                    **self._place(dataset, backbone, owner, seed), checkpoint=checkpoint
                ),
            )
            for checkpoint, phase, owner in steps
        ]

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
    """Whether unlabelled images are added where they are not what is asked about."""
    return axis != "unlabeled" and protocol.unlabeled > 0


def _episodes(protocol: Protocol, axis: Axis) -> str:
    """What the episodes of a panel have in common."""
    named = {"way": f"{protocol.way}-way", "shot": f"{protocol.shot}-shot"}
    return " ".join(text for name, text in named.items() if name != axis)
