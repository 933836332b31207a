"""The stage `table`: from per-episode scores to a CSV, and from that to LaTeX and a page."""

import itertools
from pathlib import Path
from typing import Any

from epcore.files import Provenance, write_text
from epcore.report.aggregate import tabulate_cells, tabulate_tests
from epcore.report.config import TableConfig
from epcore.report.lines import PrintedBlock, beside, blocks_of, facts_of, sources
from epcore.report.markup import to_text
from epcore.report.numbers import write_table
from epcore.report.printed import read_printed
from epcore.report.text_table import Cells, by_seed, read_cells
from epcore.report.writer import fill

LINES_OF_A_PAGE = 64


def run(config: TableConfig, printed: list[Path], out: Path) -> None:
    """The table's cells (.csv), in LaTeX (.tex) and as a page for browsers (.html).

    The tests behind the cells stand in <table>-by-seed.csv. A meta leads back to their files.

    Args:
        config: the table.
        printed: files of config/paper, whose rows have different names.
        out: the CSV file.
    """
    provenance = Provenance("table", config, [*map(Path, config.files), *printed])
    numbers = {place: cell for file in printed for place, cell in read_printed(file).items()}
    tests = tabulate_tests(config)
    write_table(tests, by_seed(out), "%.6g")
    write_table(tabulate_cells(config, tests, numbers), out, "%.4f")
    values = values_of(config, read_cells(out))
    write_text(out.with_suffix(".tex"), fill("table.tex", **values))
    write_text(out.with_suffix(".html"), fill("table.html", **values))
    provenance.write(out, by_seed(out))


def values_of(config: TableConfig, cells: Cells) -> dict[str, Any]:
    """What the templates of a table show; texts are in epcore.report.markup.

    lead: the headings before the first cell, of which some are marks and facts. per_cell: columns
    of a cell. groups: what stands above the headings, with the number of columns that each spans.
    """
    table = config.table
    extra, facts = beside(table, cells), list(facts_of(table))
    blocks = blocks_of(config, cells)
    lead, per_cell = [table.first, *table.marks, *facts], 2 if extra else 1
    groups = itertools.groupby(config.groups)
    return {
        "title": to_text(table.title),
        "caption": config.caption,
        "label": table.label,
        "lead": lead,
        "marks": len(table.marks),
        "facts": len(facts),
        "groups": [(name, per_cell * len(list(columns))) for name, columns in groups],
        "headings": [column.heading for column in table.columns],
        "beside": extra,
        "per_cell": per_cell,
        "width": len(lead) + per_cell * len(table.columns),
        "blocks": blocks,
        "pages": _pages(blocks),
        "sources": sources(config),
    }


def _pages(blocks: list[PrintedBlock]) -> list[list[PrintedBlock]]:
    """As many blocks on each page as it has room for, one at least."""
    pages: list[list[PrintedBlock]] = [[]]
    for block in blocks:
        if pages[-1] and sum(len(lines) for _, lines in (*pages[-1], block)) > LINES_OF_A_PAGE:
            pages.append([])
        pages[-1].append(block)
    return pages
