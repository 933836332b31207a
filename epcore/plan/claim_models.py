"""The file claims.yaml: the paper's claims and ours, each as predicates over cells of tables.

A cell is written `table/block/row/column`, with the names of config/tables and imagenet-fs.yaml. A
predicate holds of printed cells as they stand, and of a run's cells as far as its intervals tell.
"""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from epcore.plan.settings import Settings

Names = Annotated[tuple[str, ...], Field(min_length=1)]
# A cell, or what the first of two has more than the second.
Side = str | tuple[str, str]


class InTable(Settings):
    """Cells of the rows `row` of a table, in all blocks that have them and all columns.

    `blocks` and `columns` say which, where it is not all of them.
    """

    table: str
    row: str | Names
    blocks: Names | None = None
    columns: Names | None = None

    @property
    def rows(self) -> tuple[str, ...]:
        return (self.row,) if isinstance(self.row, str) else self.row


class Greater(InTable):
    """Each cell is greater, by more than `by`, than that of the row `than` beside it.

    Without `than` it is the row that the table compares it with.
    """

    kind: Literal["greater"]
    than: str | None = None
    by: float = 0


class Best(InTable):
    """Each cell is greater than that of every row of the literature, in its block or its table."""

    kind: Literal["best"]
    among: Literal["block", "table"] = "block"


class Within(InTable):
    """What each cell has more than that of the row `than` lies between `low` and `high`.

    of: `each` cell, or their `mean`.
    """

    kind: Literal["within"]
    than: str
    low: float
    high: float
    of: Literal["each", "mean"] = "each"


class UpTo(InTable):
    """The largest difference, in whole points.

    To the row `than`, or to the best of the literature in the block; `at`, as block/column, is the
    cell that has it.
    """

    kind: Literal["up-to"]
    points: PositiveInt
    than: str | None = None
    at: str | None = None


class Larger(Settings):
    """Each of `larger` is larger than each of `smaller`."""

    kind: Literal["larger"]
    larger: Annotated[tuple[Side, ...], Field(min_length=1)]
    smaller: Annotated[tuple[Side, ...], Field(min_length=1)]


class Rising(Settings):
    """Along each list of cells none is smaller than the one before."""

    kind: Literal["rising"]
    cells: tuple[Annotated[tuple[str, ...], Field(min_length=2)], ...]


class Equal(Settings):
    """The two cells of each pair are equal."""

    kind: Literal["equal"]
    pairs: Annotated[tuple[tuple[str, str], ...], Field(min_length=1)]


class Stated(Settings):
    """A cell, rounded to `decimals`, is the number that the text states."""

    kind: Literal["stated"]
    cell: str
    number: float
    decimals: int


class Arithmetic(Settings):
    """The product of `factors`, divided by `divisors`, rounds to `stated`."""

    kind: Literal["arithmetic"]
    factors: Annotated[tuple[float, ...], Field(min_length=1)]
    divisors: tuple[float, ...] = ()
    stated: float
    decimals: int


class FigureNumber(Settings):
    """A number that a figure of ours writes beside itself is above or below zero."""

    kind: Literal["figure"]
    figure: str
    number: str
    sign: Literal["above zero", "below zero"]


Predicate = Annotated[
    Greater | Best | Within | UpTo | Larger | Rising | Equal | Stated | Arithmetic | FigureNumber,
    Field(discriminator="kind"),
]


class Claim(Settings):
    """A claim holds if all of `holds_if` do.

    where: the section that makes it. trainings: so many of each network are needed to judge it.
    """

    id: str
    where: str
    claim: str
    trainings: PositiveInt = 1
    holds_if: Annotated[tuple[Predicate, ...], Field(min_length=1)]


class ClaimSettings(Settings):
    """Claims of the paper, and ours."""

    paper: tuple[Claim, ...]
    ours: tuple[Claim, ...]

    @model_validator(mode="after")
    def _ids_differ(self) -> "ClaimSettings":
        ids = [claim.id for claim in (*self.paper, *self.ours)]
        if twice := {each for each in ids if ids.count(each) > 1}:
            raise ValueError(f"the id {sorted(twice)[0]!r} is there twice")
        return self
