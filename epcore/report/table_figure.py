"""The stage `table-figure`: a figure that is drawn from a table and the tests behind it."""

from collections.abc import Callable
from pathlib import Path

from epcore.files import Provenance
from epcore.report import ablation, per_episode, speed
from epcore.report.figure_config import TableFigureConfig
from epcore.report.text_table import Cells, Tests, by_seed, read_cells, read_tests

MAKERS: dict[str, Callable[[TableFigureConfig, Cells, Tests, Path], None]] = {
    "ablation": ablation.make,
    "per-episode": per_episode.make,
    "speed": speed.make,
}


def run(config: TableFigureConfig, table: Path, out: Path) -> None:
    """The picture (.pdf, .png) and what is drawn (.csv).

    Raises:
        UserError: if the table or a score file cannot be read, or lacks what the figure needs.
    """
    provenance = Provenance("table-figure", config, [table, by_seed(table)])
    cells, tests = read_cells(table), read_tests(by_seed(table))
    MAKERS[config.figure.kind](config, cells, tests, out)
    provenance.write(out)
