"""Accuracy over shots, classes or unlabeled images: this run's numbers beside the paper's."""

import itertools
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from epcore.errors import UserError
from epcore.files import Provenance
from epcore.plan.stages import PlotStage
from epcore.report.figure import COLORS, panels
from epcore.report.numbers import write_table
from epcore.report.text_table import Cell, read_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = tuple(zip(COLORS, "osD^vP", strict=True))
PANEL = ["backbone", "dataset", "episodes"]
NUMBERS = (
    *("accuracy", "interval", "difference", "difference_interval"),
    *("paper_accuracy", "paper_interval"),
)


def tabulate(stage: PlotStage, tables: list[Path]) -> pd.DataFrame:
    """A line for each number that is drawn, in percent and points.

    `difference` is that of this run to the line `baseline`, paired over episodes, with its 95 %
    half width; `paper_difference` that of the printed means. Empty where there is none.

    Raises:
        UserError: if a table cannot be read or lacks a number.
    """
    cells: dict[tuple[str, str, str, str], Cell] = {}
    for path in tables:
        read = read_cells(path)
        cells |= {(cell["table"], *key): cell for key, cell in read.items()}
    lines = []
    for point in stage.points:
        key = (point.table, point.block, point.row, point.column)
        if key not in cells or not cells[key]["accuracy"]:
            raise UserError(
                f"table {point.table} has no number of ours for {point.row} in {point.block}, "
                f"{point.column}; delete its .csv and run the same command again"
            )
        numbers = {name: float(cells[key][name] or "nan") for name in NUMBERS}
        if point.baseline is None:
            numbers |= {"difference": float("nan"), "difference_interval": float("nan")}
        lines.append(
            {
                **dict(zip(PANEL, point.panel, strict=True)),
                "series": point.series,
                "x": point.x,
                "baseline": point.baseline,
                **numbers,
                "table": point.table,
            }
        )
    table = pd.DataFrame(lines)
    printed = dict(zip(_places(table, "series"), table["paper_accuracy"], strict=True))
    others = [printed.get(place, float("nan")) for place in _places(table, "baseline")]
    table["paper_difference"] = table["paper_accuracy"] - others
    return table


def _places(table: pd.DataFrame, line: str) -> list[tuple[object, ...]]:
    """Panel, line (of the column `line`) and position of every number."""
    return list(table[[*PANEL, line, "x"]].itertuples(index=False, name=None))


def draw(stage: PlotStage, table: pd.DataFrame, out: Path) -> None:
    """A row of panels for each backbone, a column for each data set and kind of episode."""
    lines = dict(list(table.groupby(PANEL)))
    backbones, datasets, kinds = (list(dict.fromkeys(table[name])) for name in PANEL)
    used = {(dataset, kind) for _, dataset, kind in lines}
    columns = [column for column in itertools.product(datasets, kinds) if column in used]
    places = {x: place for place, x in enumerate(sorted(table["x"].unique()))}
    size = {"width": 4.8, "height": 1.1 + 1.25 * len(backbones)}
    grid = panels(out, len(backbones), len(columns), **size, sharex=True, sharey="row")
    with grid as (canvas, axes):
        for row, backbone in zip(axes, backbones, strict=True):
            for panel, column in zip(row, columns, strict=True):
                if (backbone, *column) in lines:
                    _panel(panel, stage.series, lines[backbone, *column], places)
                else:
                    panel.set_axis_off()
            row[0].set_ylabel(f"{textwrap.fill(backbone, 18)}\naccuracy, %")
        for panel, names in zip(axes[0], columns, strict=True):
            panel.set_title("\n".join(names), fontsize=8)
        known = {text: line for panel in axes.flat for line, text in _handles(panel)}
        order = [f"{name}, {whose}" for whose in ("this run", "paper") for name in stage.series]
        shown = [text for text in order if text in known]
        canvas.legend(
            [known[text] for text in shown], shown, loc="outside upper center",
            ncols=min(4, len(shown)),
            fontsize=7, columnspacing=1, handletextpad=0.4,
        )  # fmt: skip
        differences = table[table["baseline"].notna()]
        note = stage.note
        if len(differences):
            one, other = differences.iloc[0][["series", "baseline"]]
            note = f"Numbers above the points: {one} minus {other} in this run, points. {note}"
        canvas.supxlabel(f"{stage.label}\n{textwrap.fill(note, 95)}", fontsize=7)


def _handles(panel: "Axes") -> list[tuple[Any, str]]:
    return list(zip(*panel.get_legend_handles_labels(), strict=True))


def _panel(
    axes: "Axes", series: tuple[str, ...], table: pd.DataFrame, places: dict[int, int]
) -> None:
    sides: tuple[tuple[str, str, float, Any], ...] = (
        ("this run", "", -0.07, {}),
        ("paper", "paper_", 0.07, {"linestyle": "--", "markerfacecolor": "white"}),
    )
    for (color, marker), name in zip(STYLES, series, strict=False):
        line = table[table["series"] == name].sort_values("x")
        middle = line["x"].map(places)
        for whose, column, shift, more in sides:
            seen = line[f"{column}accuracy"].notna()
            if seen.any():
                axes.errorbar(
                    middle[seen] + shift, line[f"{column}accuracy"][seen],
                    yerr=line[f"{column}interval"][seen].fillna(0), color=color, marker=marker,
                    markersize=3.2, linewidth=0.9, elinewidth=0.8, capsize=1.5,
                    label=f"{name}, {whose}", **more,
                )  # fmt: skip
    tops = (table["accuracy"] + table["interval"].fillna(0)).groupby(table["x"]).max()
    compared = table[table["difference"].notna()]
    for x, difference in zip(compared["x"], compared["difference"], strict=True):
        axes.annotate(
            f"{difference:+.1f}".replace("-", "−"), (places[x] - 0.07, tops[x]), (0, 3),
            textcoords="offset points", fontsize=6, ha="center",
        )  # fmt: skip
    axes.margins(y=0.2)  # above, room for the differences
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.set_xticks(list(places.values()), list(map(str, places)))


def run(stage: PlotStage, tables: list[Path], out: Path) -> None:
    """The stage `plot`: the picture (.pdf, .png) and what is drawn (.csv)."""
    provenance = Provenance("plot", stage.model_dump(mode="json"), tables)
    table = tabulate(stage, tables)
    write_table(table, out.with_suffix(".csv"), "%.4f")
    draw(stage, table, out)
    provenance.write(out)
