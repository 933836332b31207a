"""The configs of the figures that show scores and trainings."""

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field

from epcore.evaluation.config import Propagation
from epcore.report.config import Training
from epcore.report.table_settings import Block, Column, Row
from epcore.settings import ComputeConfig, Settings, StageConfig


class AlphaCandidate(Settings):
    """The checkpoints of a recipe, one for each seed: their features, and how they are tested."""

    features: tuple[str, ...]
    propagation: Propagation


class AlphaConfig(ComputeConfig):
    """Choose alpha on validation classes; `note` says what the numbers are of."""

    stage_version: int = 3
    candidates: tuple[AlphaCandidate, ...]
    label_alphas: tuple[float, ...]
    note: str


class DrawnCell(Settings):
    """A number of a table, and how a figure calls its backbone, data set and kind of episode."""

    block: str
    row: str
    column: str
    backbone: str
    dataset: str
    episodes: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The number's place in its table."""
        return self.block, self.row, self.column


class PlotPoint(DrawnCell):
    """A number and where it is drawn: its line, and its position in its panel.

    `baseline` is the line that the number's paired difference is to.
    """

    series: str
    x: int
    table: str
    baseline: str | None

    @property
    def panel(self) -> tuple[str, str, str]:
        return self.backbone, self.dataset, self.episodes


class PlotConfig(StageConfig):
    """Draw accuracy over one property of the episodes; `note` says what the numbers are of."""

    stage_version: int = 2
    label: str
    series: tuple[str, ...]
    points: tuple[PlotPoint, ...]
    note: str


class CurvesConfig(StageConfig):
    """Draw the curves of trainings; `note` says what they are of."""

    stage_version: int = 4
    trainings: tuple[Training, ...]
    note: str


class GapPair(Settings):
    """Two pretrainings of one seed: checkpoints whose validation accuracies are compared."""

    panel: str
    line: str
    seed: int
    checkpoint: str
    baseline: str


class GapConfig(StageConfig):
    """Draw how far apart pretrainings are, epoch by epoch; `note` says what they are of."""

    stage_version: int = 2
    pairs: tuple[GapPair, ...]
    label: str
    note: str


class TableFigure(Settings):
    """A figure of the numbers of one table."""

    title: str = Field(description="what the figure shows")
    table: str = Field(description="the table whose numbers are drawn")

    def draws(self, _block: Block, _row: Row, _column: Column) -> bool:
        """Whether the number at this place of the table is drawn."""
        return True

    def is_complete(self, rows: Collection[Row]) -> bool:
        """Whether a scale that has these of the drawn rows has the figure."""
        return bool(rows)


class Ablation(TableFigure):
    """Effects of the factors that the table's rows tick; see `epcore.report.ablation`."""

    kind: Literal["ablation"]

    def is_complete(self, rows: Collection[Row]) -> bool:
        """Whether there is a row for each combination of the factors in which the rows differ."""
        marks = [row.marks for row in rows]
        return len(rows) == len({*map(frozenset, marks)}) == 1 << len(factors_of(marks))


def factors_of(rows: Collection[tuple[str, ...]]) -> list[str]:
    """The marks that some rows have and others have not, ordered as in the row with most marks."""
    marks = dict.fromkeys(mark for row in sorted(rows, key=len, reverse=True) for mark in row)
    return [mark for mark in marks if not all(mark in row for row in rows)]


class Speed(TableFigure):
    """Classifiers over the time that they take; see `epcore.report.speed`."""

    kind: Literal["speed"]
    block: str = Field(description="the block whose rows are drawn")
    column: str = Field(description="the data set of the columns that are drawn")

    def draws(self, block: Block, _row: Row, column: Column) -> bool:
        return (block.name, column.dataset) == (self.block, self.column)


class PerEpisode(TableFigure):
    """Single episodes of two rows of each block; see `epcore.report.per_episode`."""

    kind: Literal["per-episode"]
    rows: tuple[str, str] = Field(description="the two rows, the first on the left")

    def draws(self, _block: Block, row: Row, _column: Column) -> bool:
        return row.name in self.rows

    def is_complete(self, rows: Collection[Row]) -> bool:
        return {row.name for row in rows} >= {*self.rows}


AnyTableFigure = Annotated[Ablation | Speed | PerEpisode, Field(discriminator="kind")]


class TableFigureCell(DrawnCell):
    """A number that a figure of a table draws; `label` and `marks` are those of its row."""

    label: str
    marks: tuple[str, ...]


class TableFigureConfig(StageConfig):
    """Draw numbers of a table, row by row; `note` says what they are of."""

    stage_version: int = 1
    figure: AnyTableFigure
    cells: tuple[TableFigureCell, ...]
    seeds: tuple[int, ...]
    note: str
