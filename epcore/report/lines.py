"""The printed lines of a table, before they are LaTeX, HTML or a terminal's."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, NamedTuple

from epcore.report.config import TableConfig
from epcore.report.table_settings import Block, Fact, Row, Table
from epcore.report.text_table import SECONDS, Cells, CsvLine

DIFFERENCE = "*difference*"  # the label of a line of differences
# What stands beside the number of this run in each column.
Beside = Literal["paper", "difference", None]


class Entry(NamedTuple):
    """A number as it is printed; `value` is empty where there is none.

    interval: half width, or empty. gray: of larger images. within_noise: a difference that is
    less than what trainings differ by.
    """

    value: str
    interval: str = ""
    gray: bool = False
    within_noise: bool = False


@dataclass(frozen=True)
class Line:
    """A printed line; its label is in epcore.report.markup.

    source: the number of its source below the table; lines of ours have none. marks: ticks or none.
    entries: one or two for each column. below: whether it is indented, because it belongs to the
    line above.
    """

    label: str
    source: int | None
    marks: tuple[bool, ...]
    facts: tuple[str, ...]
    entries: tuple[Entry | None, ...]
    below: bool = False


# The heading of a block, and its lines.
PrintedBlock = tuple[str, list[Line]]


def beside(table: Table, cells: Cells) -> Beside:
    """What stands beside the number of this run in each column of a table."""
    if table.stacked:
        return None
    if table.paper:
        return "paper"
    return "difference" if any(cell["difference"] for cell in cells.values()) else None


def sources(config: TableConfig) -> list[str]:
    """Each source of the literature once, in the order of their numbers from 1."""
    named = [row.source for block in config.table.blocks for row in block.rows if row.source]
    return list(dict.fromkeys(named))


def blocks_of(config: TableConfig, cells: Cells) -> list[PrintedBlock]:
    """The lines of a table, block by block."""
    table = config.table
    extra = beside(table, cells)
    facts = facts_of(table)
    numbers = {source: number for number, source in enumerate(sources(config), start=1)}

    def cells_of(block: Block, row: str) -> list[CsvLine]:
        return [cells[block.name, row, column.name] for column in table.columns]

    def lines(block: Block) -> Iterator[Line]:
        """Each row's line and, below it, its differences, if the table has them there."""
        above = ""
        for row in block.rows:
            row_cells = cells_of(block, row.name)
            line = Line(
                label=row.label or row.name,
                source=numbers.get(row.source),
                marks=tuple(mark in row.marks for mark in table.marks),
                facts=tuple(fact(row_cells) for fact in facts.values()),
                entries=_entries(table, row, row_cells, extra),
            )
            yield line
            measured = differences = [_difference(cell) for cell in row_cells]
            if extra == "paper" and row.baseline == above:
                printed = map(_printed_difference, row_cells, cells_of(block, above))
                differences = [*chain.from_iterable(zip(measured, printed, strict=True))]
            elif not table.stacked:
                differences = []
            if differences and any(measured):
                no_facts = ("",) * len(line.facts)
                entries = tuple(differences)
                yield replace(line, label=DIFFERENCE, facts=no_facts, entries=entries, below=True)
            above = row.name

    headings = zip(config.headings, table.blocks, strict=True)
    return [(heading, list(lines(block))) for heading, block in headings]


def facts_of(table: Table) -> dict[str, Callable[[list[CsvLine]], str]]:
    """The heading of each fact, and its text for the cells of a row."""
    return {heading: text for fact in table.facts for heading, text in FACTS[fact].items()}


# -- numbers ---------------------------------------------------------------------------------------


def _entries(
    table: Table, row: Row, cells: Sequence[CsvLine], extra: Beside
) -> tuple[Entry | None, ...]:
    """The numbers of a row: this run's, and what stands beside each."""
    if table.stacked and row.source:
        return tuple(map(_printed, cells))
    entries: list[Entry | None] = []
    for cell in cells:
        ours = Entry(_rounded(cell["accuracy"]), _rounded(cell["interval"]))
        if extra == "difference":
            entries += [ours, _difference(cell)]
            continue
        entries.append(ours._replace(within_noise=_within_noise(cell)))
        if extra == "paper":
            entries.append(_printed(cell))
    return tuple(entries)


def _printed(cell: CsvLine) -> Entry:
    """The paper's number, as it stands there."""
    return Entry(cell["paper_accuracy"], cell["paper_interval"], gray=cell["note"] == "224 px")


def _difference(cell: CsvLine) -> Entry | None:
    """The difference with its sign; None for the row that others are compared with."""
    if not cell["difference"]:
        return None
    return Entry(
        f"{float(cell['difference']):+.2f}".replace("-0.00", "+0.00"),
        _rounded(cell["difference_interval"]),
        within_noise=_within_noise(cell),
    )


def _printed_difference(cell: CsvLine, other: CsvLine) -> Entry | None:
    """The difference of two printed numbers, if both are printed."""
    if not (cell["paper_accuracy"] and other["paper_accuracy"]):
        return None
    return Entry(f"{float(cell['paper_accuracy']) - float(other['paper_accuracy']):+.2f}")


def _within_noise(cell: CsvLine) -> bool:
    """Whether the interval of a difference over several trainings contains zero."""
    if not cell["difference"] or int(cell["seeds"]) < 2:
        return False
    return abs(float(cell["difference"])) <= float(cell["difference_interval"])


def _rounded(number: str) -> str:
    return f"{float(number):.2f}" if number else ""


# -- facts -----------------------------------------------------------------------------------------


def _assumes(row: list[CsvLine]) -> str:
    return row[0]["assumes"]


def _parameters(row: list[CsvLine]) -> str:
    """Our count in thousands, from any cell of the row that is ours, beside the paper's."""
    paper = row[0]["paper_parameters"]
    ours = [cell["parameters"] for cell in row if cell["parameters"]]
    if not ours:
        return paper
    count = f"{round(int(ours[0]) / 1000)}K"
    return f"{count} ({paper})" if paper else count


def _mean(row: list[CsvLine], name: str) -> float | None:
    """The mean of a number over the cells that have it."""
    values = [float(cell[name]) for cell in row if cell[name]]
    return sum(values) / len(values) if values else None


def _seconds(row: list[CsvLine]) -> str:
    """Seconds for 1000 episodes, the mean over the columns."""
    seconds = _mean(row, SECONDS)
    return "" if seconds is None else f"{seconds:.1f}"


def _training_time(row: list[CsvLine]) -> str:
    """Mean over the columns, in seconds, minutes or hours."""
    seconds = _mean(row, "training_seconds")
    if seconds is None:
        return ""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _training_energy(row: list[CsvLine]) -> str:
    """Mean over the columns, in Wh."""
    kwh = _mean(row, "training_kwh")
    return "" if kwh is None else f"{1000 * kwh:.3g}"


# The headings of each fact, and the text below each.
FACTS: dict[Fact, dict[str, Callable[[list[CsvLine]], str]]] = {
    "parameters": {"Params": _parameters},
    "assumptions": {"assumes": _assumes},
    "seconds": {"s/1000": _seconds},
    "costs": {"training": _training_time, "Wh": _training_energy},
}
