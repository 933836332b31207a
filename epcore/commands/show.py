"""A table in the terminal: the rows of this run, each beside what the paper prints."""

import webbrowser
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Drawing
from rich.text import Text

from epcore.commands.terminal import print_table, width_of
from epcore.config.scale import MainConfig
from epcore.errors import UserError, visible
from epcore.plan import Plan, paths
from epcore.report.config import TableConfig
from epcore.report.lines import Beside, Entry, Line, beside, blocks_of
from epcore.report.markup import to_text
from epcore.report.text_table import Cells, read_cells
from epcore.settings import pick

PREFERRED = ("own", "main")


def drawing(config: TableConfig, cells: Cells, intervals: bool) -> Drawing:
    """Rows with a number of this run. Facts, sources and printed intervals are left out."""
    extra = beside(config.table, cells)
    table = Drawing(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column(_plain(config.table.first), no_wrap=True)
    for name in config.table.marks:
        table.add_column(_plain(name), justify="center", no_wrap=True)
    for group, column in zip(config.groups, config.table.columns, strict=True):
        parts = [*group.split(", "), column.heading]  # the data set, its stand-in, the shot
        heading = "\n".join(_plain(part) for part in parts if part)
        last: Any = {"justify": "right", "no_wrap": True, "vertical": "bottom"}
        table.add_column(heading, **last)
        if extra:
            table.add_column(extra, style="dim", **last)
    for heading, lines in blocks_of(config, cells):
        measured = [line for line in lines if _is_measured(line, extra)]
        if measured:
            table.add_row(Text(_plain(heading), style="bold"))
        for line in measured:
            table.add_row(*_row(line, extra, intervals))
    return table


def _is_measured(line: Line, extra: Beside) -> bool:
    """Whether a line has a number of this run: a row of ours, or a printed row trained again."""
    printed_again = line.entries[::2] if extra == "paper" else ()
    return line.source is None or any(entry and entry.value for entry in printed_again)


def _row(line: Line, extra: Beside, intervals: bool) -> list[str]:
    marks = ["✓" if mark else "" for mark in line.marks]
    numbers = [
        _number(entry, intervals and (extra != "paper" or place % 2 == 0))
        for place, entry in enumerate(line.entries)
    ]
    return ["  " * (1 + line.below) + _plain(line.label), *marks, *numbers]


def _number(entry: Entry | None, interval: bool) -> str:
    if entry is None:
        return ""
    text = entry.value.replace("-", "\N{MINUS SIGN}") or "–"
    if entry.interval and interval:
        text += f" ±{entry.interval}"
    return text + ("°" if entry.within_noise else "")


def _plain(markup: str) -> str:
    """Markup of a heading or name as plain text."""
    return visible(to_text(markup))


def cells_of(stage: TableConfig, csv: Path) -> Cells:
    """The cells of a table that was made earlier.

    Raises:
        UserError: if it cannot be read or lacks one.
    """
    cells = read_cells(csv)
    for block, row, column in stage.table.places:
        if (block.name, row.name, column.name) not in cells:
            raise UserError(
                f"table {csv} has no line for {row.name} in {block.name}, {column.name}",
                "delete it and run the same command again",
            )
    return cells


def show(plan: Plan, name: str) -> Path:
    """Prints a table of the plan's scale; returns its page.

    Raises:
        UserError: if it has not been built.
    """
    scale = plan.registry.scale_name
    csv, page, tex = (
        Path(plan.registry.path(pattern, table=name))
        for pattern in (paths.TABLE_CSV, paths.TABLE_HTML, paths.TABLE_TEX)
    )
    if not csv.is_file() or not page.is_file():
        raise UserError(
            f"table {name} of scale {scale} is not there",
            f"make it: snakemake --cores all tables/{name}.tex --config scale={scale}",
        )
    stage = plan.tables.stage(name)
    console = Console(highlight=False, markup=False)
    cells = cells_of(stage, csv)
    wide, narrow = (drawing(stage, cells, intervals) for intervals in (True, False))
    print_table(wide if width_of(wide) <= console.width else narrow)
    facts = plan.facts()
    console.print(f"\n{facts['note']} {facts['standin']}".rstrip(), style="italic")
    console.print(f"With all rows: {page} in a browser, {tex} in LaTeX", soft_wrap=True)
    return page


def run(table: str | None, settings: Path, main: MainConfig, open_page: bool) -> None:
    """The command `epcore show`.

    Raises:
        UserError: if there is no such table, or it has not been built.
    """
    plan, scale = Plan(settings, main.scale, main.seeds), main.scale
    tables = list(plan.tables.covered)
    # As Snakemake has it too, tables/main.tex.
    name = Path(table or "").stem or next(
        (candidate for candidate in (*PREFERRED, *tables) if candidate in tables), "main"
    )
    other_scales = [
        folder.name
        for folder in sorted(Path("results").glob("*"))
        if Path(paths.TABLE_HTML.format(scale=folder.name, table=name)).is_file()
    ]
    if name not in tables and other_scales:
        raise UserError(
            f"scale {scale} has no table {name}, another one has: epcore show {name} --scale "
            f"{other_scales[0]}"
        )
    pick(dict.fromkeys(tables), name, "table", f"scale {scale}")
    page = show(plan, name)
    if open_page and not webbrowser.open(page.resolve().as_uri()):
        print(f"No browser was found here; open {page} in one.")
