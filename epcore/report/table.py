"""The stage `table`: from per-episode scores to a CSV, and from that to LaTeX and a page."""

from pathlib import Path

from epcore.files import Provenance, write_text
from epcore.report.aggregate import read_accuracies, tabulate_cells, tabulate_tests
from epcore.report.config import TableConfig
from epcore.report.html_table import page
from epcore.report.latex import typeset
from epcore.report.layout import lay_out
from epcore.report.numbers import write_table
from epcore.report.printed import read_printed
from epcore.report.text_table import by_seed, read_cells, read_tests


def run(
    config: TableConfig, out: Path, paper: Path | None = None, rerun: Path | None = None
) -> None:
    """The table's cells (.csv), in LaTeX (.tex) and as a page for browsers (.html).

    The tests behind the cells stand in <table>-by-seed.csv. A meta leads back to their files.
    """
    printed = [file for file in (paper, rerun) if file]
    files = [*map(Path, config.files), *printed]
    provenance = Provenance("table", config, files)
    numbers = (read_printed(file) if file else {} for file in (paper, rerun))
    tests = read_accuracies(config)
    lines = tabulate_tests(config, tests)
    write_table(lines, by_seed(out), "%.6g")
    write_table(tabulate_cells(config, tests, lines, *numbers), out, "%.4f")
    layout = lay_out(config, read_cells(out), read_tests(by_seed(out)))
    write_text(out.with_suffix(".tex"), typeset(layout))
    write_text(out.with_suffix(".html"), page(layout))
    provenance.write(out, by_seed(out))
