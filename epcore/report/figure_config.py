"""The configs of the figures that show scores and trainings."""

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field

from epcore.errors import UserError
from epcore.evaluation.config import Propagation
from epcore.report.config import Training
from epcore.report.table_settings import Block, Column, Row, Table
from epcore.settings import ComputeConfig, Settings, StageConfig, pick


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


class PlotPoint(Settings):
    """A number of a table and where it is drawn: its panel, its line and its position there.

    `baseline` is the line that the number's paired difference is to.
    """

    backbone: str
    dataset: str
    episodes: str
    series: str
    x: int
    table: str
    block: str
    row: str
    column: str
    baseline: str | None

    @property
    def panel(self) -> tuple[str, str, str]:
        return self.backbone, self.dataset, self.episodes


class PlotConfig(StageConfig):
    """Draw accuracy over one property of the episodes; `note` says what the numbers are of."""

    stage_version: int = 1
    label: str
    series: tuple[str, ...]
    points: tuple[PlotPoint, ...]
    note: str


class CurvesConfig(StageConfig):
    """Draw the curves of trainings; `note` says what they are of."""

    stage_version: int = 3
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

    stage_version: int = 1
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

    def check(self, _table: Table, _location: str) -> None:
        """Raises `UserError` unless the table has what the figure names of it."""


class Ablation(TableFigure):
    """Effects of the factors that the table's rows tick; see `epcore.report.ablation`."""

    kind: Literal["ablation"]

    def is_complete(self, rows: Collection[Row]) -> bool:
        """Whether there is a row for each combination of the factors in which the rows differ."""
        marks = {frozenset(row.marks) for row in rows}
        return len(rows) == len(marks) == 1 << len(factors_of(rows))

    def draws(self, _block: Block, row: Row, _column: Column) -> bool:
        return bool(row.recipe)

    def check(self, table: Table, location: str) -> None:
        rows = [row for row in table.blocks[0].rows if row.recipe]
        if not self.is_complete(rows):
            raise UserError(
                f"{location}, table: the ablation needs a row for each combination of "
                f"{', '.join(factors_of(rows))}; there are {len(rows)} rows",
                "correct `marks` of the table's rows",
            )


def factors_of(rows: Collection[Row]) -> list[str]:
    """The marks that some rows have and others have not, in the order of their first row."""
    marks = dict.fromkeys(mark for row in rows for mark in row.marks)
    return [mark for mark in marks if not all(mark in row.marks for row in rows)]


class Speed(TableFigure):
    """Classifiers over the time that they take; see `epcore.report.speed`."""

    kind: Literal["speed"]
    block: str = Field(description="the block whose rows are drawn")
    column: str = Field(description="the data set of the columns that are drawn")

    def draws(self, block: Block, row: Row, column: Column) -> bool:
        return (block.name, column.dataset) == (self.block, self.column) and bool(row.recipe)

    def check(self, table: Table, location: str) -> None:
        blocks = {block.name: None for block in table.blocks}
        pick(blocks, self.block, "block", f"{location}, block")
        pick(table.groups, self.column, "column of the table", f"{location}, column")
        if "seconds" not in table.facts:
            raise UserError(
                f"{location}, table: {self.table} does not say how long its classifiers take",
                "give it `facts: [seconds]`",
            )


class PerEpisode(TableFigure):
    """Single episodes of two rows of each block; see `epcore.report.per_episode`."""

    kind: Literal["per-episode"]
    rows: tuple[str, str] = Field(description="the two rows, the first on the left")

    def draws(self, _block: Block, row: Row, _column: Column) -> bool:
        return row.name in self.rows

    def is_complete(self, rows: Collection[Row]) -> bool:
        return {row.name for row in rows} >= {*self.rows}

    def check(self, table: Table, location: str) -> None:
        ours = {row.name: None for _, row, _ in table.places if row.recipe or row.method}
        for row in self.rows:
            pick(ours, row, "row of ours", f"{location}, rows")


AnyTableFigure = Annotated[Ablation | Speed | PerEpisode, Field(discriminator="kind")]


class TableFigureConfig(StageConfig):
    """Draw a figure of a table.

    blocks, columns, marks: of the table, as far as the scale has it. backbones: how a block's
    backbone is called. datasets: how a column's data set is called.
    """

    stage_version: int = 1
    figure: AnyTableFigure
    blocks: tuple[Block, ...]
    columns: tuple[Column, ...]
    marks: tuple[str, ...]
    backbones: dict[str, str]
    datasets: dict[str, str]
    scale: str
    seeds: tuple[int, ...]

    @property
    def places(self) -> list[tuple[Block, Row, Column]]:
        """The places of the numbers that are drawn, row by row."""
        places = [
            (block, row, column)
            for block in self.blocks
            for row in block.rows
            for column in self.columns
        ]
        return [place for place in places if self.figure.draws(*place)]

    @property
    def note(self) -> str:
        """What the numbers are of: the data set and the backbone of the first of them."""
        block, _, column = self.places[0]
        backbone = self.backbones.get(str(block.backbone), "")
        dataset = self.datasets.get(column.dataset, "no data")
        return f"Scale {self.scale}: {dataset}, {backbone}"
