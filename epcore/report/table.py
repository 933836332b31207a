"""The stage `table`: from per-episode scores to a CSV, and from that to LaTeX and a page."""

from pathlib import Path

from epcore.files import Provenance, write_text
from epcore.report.aggregate import aggregate
from epcore.report.config import TableConfig
from epcore.report.html_table import page
from epcore.report.latex import typeset
from epcore.report.layout import lay_out
from epcore.report.numbers import write_table
from epcore.report.printed import read_printed
from epcore.report.text_table import read_cells


def run(
    config: TableConfig, out: Path, paper: Path | None = None, rerun: Path | None = None
) -> None:
    """The table (.csv), the same in LaTeX (.tex) and as a page for browsers (.html).

    A meta leads back to the files of every cell.
    """
    printed = [file for file in (paper, rerun) if file]
    files = [*map(Path, config.files), *printed]
    provenance = Provenance("table", config, files)
    numbers = (read_printed(file) if file else {} for file in (paper, rerun))
    write_table(aggregate(config, *numbers), out, "%.4f")
    layout = lay_out(config, read_cells(out))
    write_text(out.with_suffix(".tex"), typeset(layout))
    write_text(out.with_suffix(".html"), page(layout))
    provenance.write(out)
