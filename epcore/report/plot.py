"""Accuracy over shots, classes or unlabeled images: this run's numbers beside the paper's."""

from pathlib import Path

import pandas as pd

from epcore.files import Provenance
from epcore.report.figure import BAR, COLORS, ends, facets
from epcore.report.figure_config import PlotConfig
from epcore.report.numbers import write_table
from epcore.report.text_table import KEY, read_cells

STYLES = tuple(zip(COLORS, "osD^vPX", strict=True))
DIFFERENCE = ["difference", "difference_interval"]
NUMBERS = ["accuracy", "interval", *DIFFERENCE, "paper_accuracy", "paper_interval"]


def tabulate(config: PlotConfig, tables: list[Path]) -> pd.DataFrame:
    """A line for each number that is drawn, in percent and points; empty where there is none.

    `difference` is that of this run to the line `baseline`, paired over episodes, with its 95 %
    half width.

    Raises:
        UserError: if a table cannot be read.
    """
    cells = pd.DataFrame(cell for path in tables for cell in read_cells(path).values())
    cells[NUMBERS] = cells[NUMBERS].apply(pd.to_numeric)
    points = pd.DataFrame(point.model_dump() for point in config.points)
    place = ["table", *KEY]
    table = points.merge(cells[[*place, *NUMBERS]], on=place, how="left")
    compared = table["baseline"].notna()
    table[DIFFERENCE] = table[DIFFERENCE].where(compared)
    return table


def draw(config: PlotConfig, table: pd.DataFrame, out: Path) -> None:
    """A row of panels for each backbone, a column for each data set and kind of episode."""
    place = [table["backbone"], table["dataset"], table["episodes"], table["x"]]
    table = table.assign(
        column=table["dataset"] + "\n" + table["episodes"],
        top=(table["accuracy"] + table["interval"].fillna(0)).groupby(place).transform("max"),
    )
    printed = ", paper"
    ours = ", this run" if table["paper_accuracy"].notna().any() else ""
    parts = [
        ends(table.assign(accuracy=table[f"{of}accuracy"], line=table["series"] + source),
             "accuracy", f"{of}interval")
        for of, source in (("", ours), ("paper_", printed))
    ]  # fmt: skip
    drawn = pd.concat(parts, ignore_index=True).dropna(subset="accuracy")
    styles = [*zip(config.series, STYLES, strict=False)]
    looks = {f"{name}{ours}": (color, marker, "-") for name, (color, marker) in styles}
    looks |= {f"{name}{printed}": (color, "x", "--") for name, (color, _) in styles}
    lines = [line for line in looks if line in set(drawn["line"])]
    colors, markers, dashes = ([looks[line][place] for line in lines] for place in range(3))
    note = config.note
    compared = table[table["difference"].notna()]
    if len(compared):
        series, baseline = compared.iloc[0][["series", "baseline"]]
        note = f"Numbers above the points: {series} minus {baseline} in this run, points. {note}"
    height = 0.8 + 0.1 * len(lines) + 1.4 * table["backbone"].nunique()  # legend, panels
    with facets(
        out, "catplot", (4.8, height), f"{config.label}\n{note}",
        data=drawn, row="backbone", col="column", kind="point", x="x", y="accuracy", hue="line",
        hue_order=lines, palette=colors, markers=markers, linestyles=dashes, markersize=3.2,
        linewidth=0.9, dodge=0.2, errorbar=BAR, capsize=0.1, err_kws={"linewidth": 0.8},
        sharey="row", margin_titles=True,
    ) as grid:  # fmt: skip
        grid.set_ylabels("accuracy, %")
        for panel in grid.axes.flat:
            panel.margins(y=0.2)  # above, room for the differences
            panel.axison = panel.has_data()
        places = sorted(table["x"].unique())
        for line in compared.itertuples():
            grid.axes_dict[line.backbone, line.column].annotate(
                f"{line.difference:+.1f}".replace("-", "−"), (places.index(line.x), line.top),
                (0, 3), textcoords="offset points", fontsize=6, ha="center",
            )  # fmt: skip


def run(config: PlotConfig, tables: list[Path], out: Path) -> None:
    """The stage `plot`: the picture (.pdf, .png) and what is drawn (.csv)."""
    provenance = Provenance("plot", config, tables)
    table = tabulate(config, tables)
    write_table(table, out.with_suffix(".csv"), "%.4f")
    draw(config, table, out)
    provenance.write(out)
