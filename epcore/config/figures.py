"""The files figures.yaml and plots.yaml."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from epcore.analysis.config import DecisionBoundary, InterpolatedPairs, TwoMoons
from epcore.config.names import Name
from epcore.report.figure_config import AnyTableFigure
from epcore.settings import Probability, Settings


class NetworkFigure(Settings):
    """A figure of trained networks: a recipe each, tested on the episodes of one protocol."""

    column: str = Field(description="the scale's column that names the data set")
    backbone: str = Field(description="an entry of backbones.yaml")
    protocol: str = Field(description="its episodes, an entry of protocols.yaml")
    recipes: tuple[str, ...] = Field(description="the recipes of the networks")


class AlphaSearch(NetworkFigure):
    """Recipes that differ in the alpha of embedding propagation."""

    label_alphas: Annotated[tuple[Probability, ...], Field(min_length=1)] = Field(
        description="the alphas of label propagation that are tried"
    )


class Interpolation(NetworkFigure, InterpolatedPairs):
    """Class probabilities between pairs of embeddings of two networks."""

    recipes: tuple[str, str] = Field(
        description="the two networks; the first is on top and what the second is taken from"
    )
    labels: tuple[str, str] = Field(description="how the figure calls them")


class Gap(Settings):
    """How far apart recipes are while they train: each row of a table and the row it names."""

    table: str = Field(description="a table; a panel is a block of it")
    label: str = Field(description="which rows are compared, as the axis says")


class FigureSettings(Settings):
    """The sections; names in the file have hyphens, as the figures' files do."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    alpha: AlphaSearch = Field(description="validation accuracy over both alphas")
    two_moons: TwoMoons = Field(description="embedding propagation of two moons")
    decision_boundary: DecisionBoundary = Field(
        description="boundaries of three classes in the plane"
    )
    interpolation: Interpolation = Field(description="class probability between two images")
    gap: Gap = Field(description="how far apart rows are while they train")
    of_tables: dict[Name, AnyTableFigure] = Field(
        description="name -> a figure that is drawn from a table and the tests behind it"
    )


Axis = Literal["shot", "way", "unlabeled"]


class Series(Settings):
    """A line of a plot."""

    recipe: str = Field(description="the recipe of a line")
    label: str = Field(description="how the legend calls it")


class Plot(Settings):
    """Accuracy over a property of episodes, from the numbers of tables."""

    axis: Axis = Field(description="the property of episodes along the axis")
    label: str = Field(description="what stands below the axis")
    tables: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="the tables that numbers come from; where two have the same, the first counts"
    )
    series: Annotated[tuple[Series, ...], Field(min_length=1, max_length=7)] | None = Field(
        default=None, description="its lines; those of all plots if there is none"
    )
    note: str = Field(default="", description="a sentence below the figure")


class PlotSettings(Settings):
    """The file plots.yaml."""

    series: Annotated[tuple[Series, ...], Field(min_length=1, max_length=2)] = Field(
        description="the lines of plots without any of their own; of two the difference is drawn "
        "too"
    )
    plots: dict[Name, Plot] = Field(description="name -> what is drawn")
