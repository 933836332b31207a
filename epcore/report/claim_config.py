"""The config of the stage that judges claims."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from epcore.report.config import ScoreColumn
from epcore.settings import Settings, StageConfig


class Product(Settings):
    """The product of `factors`, divided by `divisors`, rounds to `stated`."""

    factors: Annotated[tuple[float, ...], Field(min_length=1)] = Field(
        description="what is multiplied"
    )
    divisors: tuple[float, ...] = Field(default=(), description="what the product is divided by")
    stated: float = Field(description="what the text states")
    decimals: int = Field(description="decimals that the result is rounded to")


class SignedNumber(Settings):
    """A number that a figure of ours writes beside itself is above or below zero."""

    figure: str = Field(description="the figure")
    number: str = Field(description="the number's name in its CSV")
    sign: Literal["above zero", "below zero"] = Field(description="on which side of zero it is")


class Claimed(Settings):
    """What is claimed, and where."""

    id: str = Field(description="its name in tables and pages")
    where: str = Field(description="the section that makes it")
    claim: str = Field(description="what is claimed, in a sentence")
    trainings: PositiveInt = Field(
        default=1, description="so many of each network are needed to judge it"
    )


class ClaimCell(Settings):
    """A cell of a table, as printed, and the scores of every seed of this run; either may lack.

    Cells of the same `draw` have the same support and query images, episode by episode.
    """

    printed: str = ""
    printed_interval: str = ""
    scores: tuple[ScoreColumn, ...] = ()
    draw: str = ""


class ClaimCase(Settings):
    """The sum of the cells `plus`, less those of `minus`, less the largest of `rivals`, if any."""

    name: str
    plus: tuple[str, ...]
    minus: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        return (*self.plus, *self.minus, *self.rivals)


class ClaimCondition(Settings):
    """Every case, some case or the mean of all cases lies between `low` and `high`.

    above: `low` itself is too low. absolute: it is asked only of data that the paper has.
    """

    cases: tuple[ClaimCase, ...]
    how: Literal["every", "some", "mean"] = "every"
    low: float | None = None
    high: float | None = None
    above: bool = False
    absolute: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(cell for case in self.cases for cell in case.cells)


class ClaimNumber(SignedNumber):
    """A number in a figure's file, which is empty if the scale lacks the figure, and its sign."""

    file: str


class JudgedClaim(Claimed):
    """A claim, and all that must be so if it holds.

    unasked: what a run says of it that has none of its cells.
    """

    ours: bool
    tables: tuple[str, ...]
    conditions: tuple[ClaimCondition, ...]
    products: tuple[Product, ...]
    numbers: tuple[ClaimNumber, ...]
    unasked: str


class ClaimsConfig(StageConfig):
    """Judge claims by printed cells and by this run's; see `epcore.report.verdicts`.

    papers: table -> the file of config/paper that prints it.
    """

    stage_version: int = 2
    title: str
    notes: str
    seeds: tuple[int, ...]
    comparable: bool
    claims: tuple[JudgedClaim, ...]
    cells: dict[str, ClaimCell]
    papers: dict[str, str]
