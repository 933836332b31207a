"""The config of the stage that judges claims."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from epcore.settings import Settings, StageConfig


def parts_of(cell: str) -> tuple[str, str, str, str]:
    """Table, block, row and column of `table/block/row/column`; names of rows may hold a slash."""
    table, _, place = cell.partition("/")
    block, _, place = place.partition("/")
    row, _, column = place.rpartition("/")
    return table, block, row, column


class Bounds(Settings):
    """The range that all cases of a contrast, any of them or their mean must lie in."""

    of: Literal["all", "any", "mean"] = Field(
        default="all", description="which of the differences must lie within the bounds"
    )
    above: float | None = Field(default=None, description="a bound that they must exceed")
    at_least: float | None = Field(default=None, description="the smallest value allowed")
    at_most: float | None = Field(default=None, description="the largest value allowed")

    @model_validator(mode="after")
    def _bounded(self) -> "Bounds":
        if self.above is not None and self.at_least is not None:
            raise ValueError("give above or at_least, not both")
        if self.low is None and self.at_most is None:
            raise ValueError("give a bound: above, at_least or at_most")
        return self

    @property
    def low(self) -> float | None:
        """The lower bound, which is itself too low if it is `above`."""
        return self.at_least if self.above is None else self.above


class Product(Settings):
    """The product of `factors`, divided by `divisors`, rounds to `stated`."""

    factors: Annotated[tuple[float, ...], Field(min_length=1)] = Field(
        description="what is multiplied"
    )
    divisors: tuple[float, ...] = Field(default=(), description="what the product is divided by")
    stated: float = Field(description="what the text states")
    decimals: int = Field(description="decimals that the result is rounded to")


class SignedNumber(Settings):
    """A number in the CSV file of a figure is above or below zero."""

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
    """A cell that claims name: what the paper prints, and where this run measures it.

    measured: `table/block/row/column` of this run's tables; empty if the scale lacks the cell.
    """

    printed: str = ""
    printed_interval: str = ""
    measured: str = ""


class Case(Settings):
    """The sum of the cells `plus` minus the sum of `minus`, minus the largest of `rivals`."""

    name: str
    plus: tuple[str, ...]
    minus: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        return (*self.plus, *self.minus, *self.rivals)

    @property
    def is_accuracy(self) -> bool:
        """Whether it is an accuracy itself, which only a run on the paper's data can have."""
        return not self.minus and not self.rivals


class JudgedContrast(Bounds):
    """The bounds of a contrast, and its cases written out."""

    cases: tuple[Case, ...]

    @property
    def is_accuracy(self) -> bool:
        return all(case.is_accuracy for case in self.cases)


class JudgedClaim(Claimed):
    """A claim with all cells written out."""

    ours: bool
    contrasts: tuple[JudgedContrast, ...] = ()
    products: tuple[Product, ...] = ()
    numbers: tuple[SignedNumber, ...] = ()

    @property
    def cells(self) -> list[str]:
        """Every cell, each once."""
        cases = [case for contrast in self.contrasts for case in contrast.cases]
        return list(dict.fromkeys(cell for case in cases for cell in case.cells))

    @property
    def tables(self) -> list[str]:
        """The tables of its cells, each once."""
        return list(dict.fromkeys(parts_of(cell)[0] for cell in self.cells))

    @property
    def figures(self) -> list[str]:
        """The figures of its numbers, each once."""
        return list(dict.fromkeys(number.figure for number in self.numbers))


class ClaimsConfig(StageConfig):
    """Judge claims by printed cells and by the tables of this run; see `epcore.report.verdicts`.

    tables, figures: those of this run that the claims name, in the order of the input files.
    papers: table -> the file of config/paper that prints it.
    """

    stage_version: int = 3
    title: str
    notes: str
    seeds: tuple[int, ...]
    comparable: bool
    claims: tuple[JudgedClaim, ...]
    cells: dict[str, ClaimCell]
    tables: tuple[str, ...]
    figures: tuple[str, ...]
    papers: dict[str, str]
