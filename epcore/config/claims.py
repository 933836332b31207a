"""The file claims.yaml: the paper's claims and ours, each as predicates over cells of tables.

A cell is written `table/block/row/column`, with the names of config/tables and imagenet-fs.yaml. A
predicate holds of printed cells as they stand, and of a run's cells as far as its intervals tell.
"""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from epcore.report.claim_config import Claimed, Product, SignedNumber
from epcore.settings import Settings

Names = Annotated[tuple[str, ...], Field(min_length=1)]
# A cell, or what the first of two has more than the second.
Side = str | tuple[str, str]


class InTable(Settings):
    """Cells of rows of a table."""

    table: str = Field(description="a table of config/tables")
    row: str | Names = Field(description="a row or several")
    blocks: Names | None = Field(
        default=None, description="the blocks that count; all that have the row if there is none"
    )
    columns: Names | None = Field(
        default=None, description="the columns that count; all if there is none"
    )

    @property
    def rows(self) -> tuple[str, ...]:
        return (self.row,) if isinstance(self.row, str) else self.row


class Greater(InTable):
    """Each cell is greater, by more than `by`, than that of the row `than` beside it."""

    kind: Literal["greater"]
    than: str | None = Field(
        default=None,
        description="the row beside which it stands; the one that the table compares it with if "
        "there is none",
    )
    by: float = Field(default=0, description="points that it must be greater by")


class Best(InTable):
    """Each cell is greater than that of every row of the literature, in its block or its table."""

    kind: Literal["best"]
    among: Literal["block", "table"] = Field(
        default="block",
        description="the rows of the literature in its block, or in the whole table",
    )


class Within(InTable):
    """What each cell has more than that of the row `than` lies between `low` and `high`."""

    kind: Literal["within"]
    than: str = Field(description="the row that it is compared with")
    low: float = Field(description="the smallest difference, in points")
    high: float = Field(description="the largest difference, in points")
    of: Literal["each", "mean"] = Field(
        default="each", description="of each cell, or of their mean"
    )


class UpTo(InTable):
    """The largest difference to another row is so many points."""

    kind: Literal["up-to"]
    points: PositiveInt = Field(description="the largest difference, in whole points")
    than: str | None = Field(
        default=None,
        description="the row that it is compared with; the best of the literature in the block if"
        " there is none",
    )
    at: str | None = Field(default=None, description="block/column of the cell that has it")


class Larger(Settings):
    """Each of `larger` is larger than each of `smaller`."""

    kind: Literal["larger"]
    larger: Annotated[tuple[Side, ...], Field(min_length=1)] = Field(
        description="cells, or two of which the difference counts"
    )
    smaller: Annotated[tuple[Side, ...], Field(min_length=1)] = Field(
        description="cells, or two of which the difference counts"
    )


class Rising(Settings):
    """Along each list of cells none is smaller than the one before."""

    kind: Literal["rising"]
    cells: tuple[Annotated[tuple[str, ...], Field(min_length=2)], ...] = Field(
        description="lists of cells"
    )


class Equal(Settings):
    """The two cells of each pair are equal."""

    kind: Literal["equal"]
    pairs: Annotated[tuple[tuple[str, str], ...], Field(min_length=1)] = Field(
        description="pairs of cells"
    )


class Stated(Settings):
    """A cell, rounded to `decimals`, is the number that the text states."""

    kind: Literal["stated"]
    cell: str = Field(description="the cell")
    number: float = Field(description="what the text states")
    decimals: int = Field(description="decimals that the cell is rounded to")


class Arithmetic(Product):
    """The product of `factors`, divided by `divisors`, rounds to `stated`."""

    kind: Literal["arithmetic"]


class FigureNumber(SignedNumber):
    """A number that a figure of ours writes beside itself is above or below zero."""

    kind: Literal["figure"]


Predicate = Annotated[
    Greater | Best | Within | UpTo | Larger | Rising | Equal | Stated | Arithmetic | FigureNumber,
    Field(discriminator="kind"),
]


class Claim(Claimed):
    """A claim holds if all of its predicates do."""

    holds_if: Annotated[tuple[Predicate, ...], Field(min_length=1)] = Field(
        description="it holds if all of these do"
    )

    @model_validator(mode="after")
    def _of_figures_or_tables(self) -> "Claim":
        if len({isinstance(each, FigureNumber) for each in self.holds_if}) > 1:
            raise ValueError(
                "a number of a figure is not judged together with others; make a claim of each"
            )
        return self


class ClaimSettings(Settings):
    """Claims of the paper, and ours."""

    paper: tuple[Claim, ...] = Field(description="what the paper says")
    ours: tuple[Claim, ...] = Field(description="what we say")

    @model_validator(mode="after")
    def _ids_differ(self) -> "ClaimSettings":
        ids = [claim.id for claim in (*self.paper, *self.ours)]
        if twice := {each for each in ids if ids.count(each) > 1}:
            raise ValueError(f"the id {sorted(twice)[0]!r} is there twice")
        return self
