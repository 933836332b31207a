"""The file claims.yaml: the paper's claims and ours, most of them as contrasts of table cells.

A cell is written `table/block/row/column`, with the names of config/tables.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from epcore.report.claim_config import Bounds, Claimed, Product, SignedNumber
from epcore.settings import Settings


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


# A cell, or a gain: the first cell minus the second.
Term = str | tuple[str, str]
Terms = Annotated[
    tuple[Term, ...],
    BeforeValidator(_as_list, json_schema_input_type=str | tuple[Term, ...]),
]


class Contrast(Bounds):
    """Cells minus other cells or minus the best of their rivals, within bounds.

    `{plus: main/*/EPNet/*, minus: main/*/--Net/*, above: 0}` says that EPNet is above --Net in
    every block and column of the main table.
    """

    plus: Annotated[Terms, Field(min_length=1)] = Field(
        description="a cell or a list of cells; [A, B] inside the list is the gain of A over B; "
        "* stands for every block, row or column that the table has"
    )
    minus: Terms = Field(
        default=(),
        description="what is subtracted, each in turn; * stands for the block, row or column of "
        "the cell in plus",
    )
    rivals: Literal["block", "table"] | None = Field(
        default=None,
        description="the best row of the literature, in the same block or in the whole table, is "
        "subtracted",
    )

    @model_validator(mode="after")
    def _one_opponent(self) -> "Contrast":
        if self.minus and self.rivals:
            raise ValueError("give minus or rivals, not both")
        if self.of == "mean" and self.rivals:
            raise ValueError(
                "a mean is of differences to cells in minus; the best of rivals has none"
            )
        return self


class Claim(Claimed):
    """A claim; it holds if all of its contrasts, products or numbers do."""

    contrasts: tuple[Contrast, ...] = Field(default=(), description="differences of table cells")
    products: tuple[Product, ...] = Field(default=(), description="arithmetic of the paper's text")
    numbers: tuple[SignedNumber, ...] = Field(default=(), description="numbers of our figures")

    @model_validator(mode="after")
    def _one_kind(self) -> "Claim":
        if sum(map(bool, (self.contrasts, self.products, self.numbers))) != 1:
            raise ValueError("give one of contrasts, products and numbers")
        return self


class ClaimSettings(Settings):
    """The claims of the paper, and those of this project."""

    paper: tuple[Claim, ...] = Field(description="claims of the paper")
    ours: tuple[Claim, ...] = Field(description="claims of this project")

    @model_validator(mode="after")
    def _ids_differ(self) -> "ClaimSettings":
        ids = [claim.id for claim in (*self.paper, *self.ours)]
        if repeated := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"the id {sorted(repeated)[0]!r} is there twice")
        return self
