"""Accuracy of classifiers on the same features over the processor time that they take."""

from pathlib import Path

import pandas as pd

from epcore.files import Provenance, meta_of
from epcore.report.figure import BLUE, facets
from epcore.report.figure_config import SpeedConfig
from epcore.report.numbers import write_table
from epcore.report.scores import read_scores, reading_classifier


def tabulate(config: SpeedConfig) -> pd.DataFrame:
    """A line for each classifier and panel, of means over seeds.

    Accuracy in percent; `seconds` of processor time for 1000 episodes, a forward pass through the
    network not counted.
    """
    lines = []
    for point in config.points:
        with reading_classifier(point.scores) as meta:
            seconds = float(meta["seconds_per_1000_episodes"])
        lines.append(
            {
                "panel": point.panel,
                "classifier": point.label,
                "accuracy": read_scores(point.scores).mean(),
                "seconds": seconds,
            }
        )
    grouped = pd.DataFrame(lines).groupby(["panel", "classifier"], sort=False)
    return grouped.mean().reset_index()


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


def run(config: SpeedConfig, out: Path) -> None:
    """The stage `speed`: the picture (.pdf, .png) and what is drawn (.csv)."""
    scores = [Path(point.scores.file) for point in config.points]
    inputs = [file for each in scores for file in (each, meta_of(each))]
    provenance = Provenance("speed", config, list(dict.fromkeys(inputs)))
    table = tabulate(config)
    write_table(table, out.with_suffix(".csv"), "%.4g")
    draw(table, config.note, out)
    provenance.write(out)
