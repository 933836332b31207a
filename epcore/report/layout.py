"""What stands where in a table, before it is LaTeX or HTML."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from epcore.report.config import TableConfig
from epcore.report.markup import literal
from epcore.report.table_settings import Row
from epcore.report.text_table import SECONDS, Cells, CsvLine, Tests


@dataclass(frozen=True)
class Number:
    """A number as it is printed; `value` is empty where there is none.

    `interval` is the half width, or empty. Differences have a sign. `gray` is of larger images.
    `within_noise`: the difference to another row is less than what trainings differ by.
    """

    value: str
    interval: str = ""
    gray: bool = False
    within_noise: bool = False


@dataclass(frozen=True)
class Line:
    """A row. `source` is the number of its source below the table; rows of ours have none.

    `marks` are ticks or not, `facts` texts. `numbers` has one or two for each column; None stays
    empty. `below` is indented, because it belongs to the line above.
    """

    label: str
    source: int | None
    marks: tuple[bool, ...]
    facts: tuple[str, ...]
    numbers: tuple[Number | None, ...]
    below: bool = False


@dataclass(frozen=True)
class Block:
    """The rows of one backbone."""

    heading: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Layout:
    """A table as it is typeset: first column, ticks, facts, and one or two numbers for each cell.

    All its texts but `label`, which is LaTeX's own, are in epcore.report.markup. `groups` and
    `headings` stand above each column.

    Facts are the number of parameters, what the classifier assumes, how long it takes, and how the
    training of each phase went.

    Stacked, printed numbers and differences have lines of their own.

    `sources` has each source of the literature once, in the order of their numbers from 1.
    """

    label: str
    caption: str
    first: str
    marks: tuple[str, ...]
    facts: tuple[str, ...]
    beside: Literal["paper", "difference", None]
    groups: tuple[str, ...]
    headings: tuple[str, ...]
    blocks: tuple[Block, ...]
    sources: tuple[str, ...]

    @property
    def lead(self) -> int:
        """Columns before the first cell."""
        return 1 + len(self.marks) + len(self.facts)

    @property
    def per_cell(self) -> int:
        return 1 if self.beside is None else 2

    @property
    def width(self) -> int:
        return self.lead + self.per_cell * len(self.headings)

    @property
    def spans(self) -> list[tuple[str, int]]:
        """Each group once for the columns that it reaches over, and how many these are."""
        grouped = itertools.groupby(self.groups)
        return [(name, self.per_cell * len(list(columns))) for name, columns in grouped]


def lay_out(config: TableConfig, cells: Cells, tests: Tests) -> Layout:
    """The layout of a table's cells and of the tests behind them."""
    table = config.table
    blocks = [
        (heading, block)
        for heading, block in zip(config.headings, table.blocks, strict=True)
        if heading is not None
    ]
    differences = any(cell["difference"] for cell in cells.values())
    beside: Literal["paper", "difference", None] = "difference" if differences else None
    if table.paper:
        beside = "paper"
    if table.stacked:
        beside = None
    facts: dict[str, Callable[[list[CsvLine]], str]] = {}
    if any(cell["paper_parameters"] for cell in cells.values()):
        facts["Params"] = _parameters
    if table.assumptions:
        facts["assumes"] = lambda row: row[0]["assumes"]
    if table.seconds:
        facts["s/1000"] = _seconds
    if table.costs:
        facts["training"] = _training_time
        facts["Wh"] = _training_energy
    if table.training:
        facts["pretraining"] = partial(_training, tests, "pretraining")
        facts["fine-tuning"] = partial(_training, tests, "finetuning")
    named = [row.source for _, block in blocks for row in block.rows if row.source]
    sources = tuple(dict.fromkeys([*named, *([table.rerun.source] if table.rerun else [])]))

    def lines(block: str, row: Row) -> list[Line]:
        """The row's line, and below it one of the re-run's numbers or, stacked, its differences."""
        found = [cells[block, row.name, column.name] for column in table.columns]
        line = Line(
            label=row.label or literal(row.name),
            source=sources.index(row.source) + 1 if row.source else None,
            marks=tuple(mark in row.marks for mark in table.marks),
            facts=tuple(fact(found) for fact in facts.values()),
            numbers=(
                tuple(map(_printed, found))
                if table.stacked and row.source
                else tuple(number for cell in found for number in _numbers(cell, beside))
            ),
        )
        again = tuple(map(_rerun, found))
        if table.rerun and any(again):
            numbers = tuple(number for each in again for number in (None, each))
            source = sources.index(table.rerun.source) + 1
            rerun = Line(
                "*authors' re-run*", source, line.marks, ("",) * len(facts), numbers, below=True
            )
            return [line, rerun]
        gaps = tuple(map(_difference, found))
        if not table.stacked or not any(gaps):
            return [line]
        return [line, replace(line, label="*difference*", numbers=gaps, below=True)]

    return Layout(
        label=table.label,
        caption=config.caption,
        first=table.first,
        marks=table.marks,
        facts=tuple(facts),
        beside=beside,
        groups=config.groups,
        headings=tuple(column.heading for column in table.columns),
        blocks=tuple(
            Block(heading, tuple(one for row in block.rows for one in lines(block.name, row)))
            for heading, block in blocks
        ),
        sources=tuple(map(literal, sources)),
    )


def _numbers(
    cell: CsvLine, beside: Literal["paper", "difference", None]
) -> tuple[Number | None, ...]:
    """The number of this run, and what stands beside it."""
    ours = Number(_rounded(cell["accuracy"]), _rounded(cell["interval"]))
    if beside == "difference":
        return ours, _difference(cell)
    ours = replace(ours, within_noise=_within_noise(cell))
    return (ours, _printed(cell)) if beside == "paper" else (ours,)


def _printed(cell: CsvLine) -> Number:
    """The paper's, as it stands there."""
    gray = cell["note"] == "224 px"
    return Number(cell["paper_accuracy"], cell["paper_interval"], gray)


def _rerun(cell: CsvLine) -> Number | None:
    """The authors' re-run's, as it stands there; none for rows that it does not have."""
    if not cell["rerun_accuracy"]:
        return None
    return Number(cell["rerun_accuracy"], cell["rerun_interval"])


def _difference(cell: CsvLine) -> Number | None:
    """With its sign; none for the row that others are compared with."""
    if not cell["difference"]:
        return None
    return Number(
        f"{float(cell['difference']):+.2f}".replace("-0.00", "+0.00"),
        _rounded(cell["difference_interval"]),
        within_noise=_within_noise(cell),
    )


def _within_noise(cell: CsvLine) -> bool:
    """Whether the interval of a difference over several trainings holds zero."""
    if not cell["difference"] or int(cell["seeds"]) < 2:
        return False
    return abs(float(cell["difference"])) <= float(cell["difference_interval"])


def _rounded(number: str) -> str:
    return f"{float(number):.2f}" if number else ""


def _parameters(row: list[CsvLine]) -> str:
    """Our count in thousands, from any cell of the row that is ours, beside the paper's."""
    paper = row[0]["paper_parameters"]
    ours = [cell["parameters"] for cell in row if cell["parameters"]]
    if not ours:
        return paper
    count = f"{round(int(ours[0]) / 1000)}K"
    return f"{count} ({paper})" if paper else count


def _seconds(row: list[CsvLine]) -> str:
    """Seconds for 1000 episodes, the mean over the columns."""
    found = [float(cell[SECONDS]) for cell in row if cell.get(SECONDS)]
    return f"{sum(found) / len(found):.1f}" if found else ""


def _training_time(row: list[CsvLine]) -> str:
    """Mean over the columns, in seconds, minutes or hours."""
    found = [float(cell["training_seconds"]) for cell in row if cell["training_seconds"]]
    if not found:
        return ""
    seconds = sum(found) / len(found)
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _training_energy(row: list[CsvLine]) -> str:
    """Mean over the columns, in Wh."""
    found = [1000 * float(cell["training_kwh"]) for cell in row if cell["training_kwh"]]
    return f"{sum(found) / len(found):.3g}" if found else ""


def _training(tests: Tests, phase: str, row: list[CsvLine]) -> str:
    """When the rate first fell and, in brackets, the epochs trained: of each training once."""
    behind = [test for cell in row for test in tests.get(_key(cell), [])]
    texts = [
        f"{test[f'{phase}_fell']} ({test[f'{phase}_epochs']})"
        for test in behind
        if test[f"{phase}_fell"]
    ]
    return ", ".join(dict.fromkeys(texts))


def _key(cell: CsvLine) -> tuple[str, str, str]:
    return cell["block"], cell["row"], cell["column"]
