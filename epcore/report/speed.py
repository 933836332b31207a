"""Accuracy of classifiers on the same features over the processor time that they take."""

from pathlib import Path

import pandas as pd

from epcore.files import Provenance
from epcore.report.figure import BLUE, facets
from epcore.report.figure_config import TableFigureConfig
from epcore.report.numbers import write_table
from epcore.report.text_table import SECONDS, Cells, read_cells


def tabulate(config: TableFigureConfig, cells: Cells) -> pd.DataFrame:
    """A line for each classifier and panel, of means over seeds.

    Accuracy in percent; `seconds` of processor time for 1000 episodes, a forward pass through the
    network not counted.
    """
    return pd.DataFrame(
        {
            "panel": cell.episodes,
            "classifier": cell.label,
            "accuracy": float(cells[cell.key]["accuracy"]),
            "seconds": float(cells[cell.key][SECONDS] or "nan"),
        }
        for cell in config.cells
    )


def draw(table: pd.DataFrame, note: str, out: Path) -> None:
    """A panel for each kind of episode; numbers stand for classifiers, which are listed below."""
    names = list(dict.fromkeys(table["classifier"]))
    listed = "; ".join(
        f"{number}\N{NO-BREAK SPACE}{name}" for number, name in enumerate(names, start=1)
    )
    below = f"seconds of processor time for 1000 episodes\n{listed}\n{note}"
    with facets(
        out, "relplot", (5.6, 1.2 + 1.2 * table["panel"].nunique()), below,
        data=table, col="panel", col_wrap=2, x="seconds", y="accuracy", s=8, color=BLUE,
        linewidth=0, facet_kws={"sharey": False},
    ) as grid:  # fmt: skip
        grid.set(xscale="log", ylabel="accuracy, %")
        for name, panel in grid.axes_dict.items():
            for line in table[table["panel"] == name].itertuples():
                panel.annotate(
                    str(names.index(str(line.classifier)) + 1), (line.seconds, line.accuracy),
                    xytext=(2, 1), textcoords="offset points", fontsize=6,
                )  # fmt: skip


def run(config: TableFigureConfig, table: Path, out: Path) -> None:
    """The stage `speed`: the picture (.pdf, .png) and what is drawn (.csv)."""
    provenance = Provenance("speed", config, [table])
    numbers = tabulate(config, read_cells(table))
    write_table(numbers, out.with_suffix(".csv"), "%.4g")
    draw(numbers, config.note, out)
    provenance.write(out)
