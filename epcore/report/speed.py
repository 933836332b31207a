"""Accuracy of classifiers on the same features over the processor time that they take."""

import json
import textwrap
from pathlib import Path

import pandas as pd

from epcore.files import Provenance, meta_of
from epcore.plan.stages import SpeedStage
from epcore.report.aggregate import read_scores
from epcore.report.figure import BLUE, panels
from epcore.report.numbers import write_table


def tabulate(stage: SpeedStage) -> pd.DataFrame:
    """A line for each classifier and panel, of means over seeds.

    Accuracy in percent; `seconds` of processor time for 1000 episodes, a forward pass through the
    network not counted.
    """
    lines = []
    for point in stage.points:
        scores = Path(point.scores)
        meta = json.loads(meta_of(scores).read_text(encoding="utf-8"))
        lines.append(
            {
                "panel": point.panel,
                "classifier": point.label,
                "accuracy": read_scores(scores).mean(),
                "seconds": float(meta["seconds_per_1000_episodes"]),
            }
        )
    grouped = pd.DataFrame(lines).groupby(["panel", "classifier"], sort=False)
    return grouped.mean().reset_index()


def draw(table: pd.DataFrame, note: str, out: Path) -> None:
    """A panel for each kind of episode; numbers stand for classifiers, which are listed below."""
    names = list(dict.fromkeys(table["classifier"]))
    columns = list(dict.fromkeys(table["panel"]))
    rows = -(-len(columns) // 2)
    width = min(2, len(columns))
    with panels(out, rows, width, width=5.6, height=1 + 2.1 * rows, sharex=True) as (canvas, axes):
        for panel, name in zip(axes.flat, columns, strict=False):
            shown = table[table["panel"] == name]
            panel.scatter(shown["seconds"], shown["accuracy"], s=4, color=BLUE)
            for line in shown.itertuples():
                number = names.index(str(line.classifier)) + 1
                panel.annotate(
                    str(number), (line.seconds, line.accuracy), fontsize=6,
                    xytext=(2, 1), textcoords="offset points",
                )  # fmt: skip
            panel.set_title(name)
            panel.set_xscale("log")
        for panel in axes[:, 0]:
            panel.set_ylabel("accuracy, %")
        for panel in list(axes.flat)[len(columns) :]:
            panel.set_axis_off()
        listed = textwrap.fill(
            "; ".join(f"{number} {name}" for number, name in enumerate(names, start=1)), 110
        )
        canvas.supxlabel(
            f"seconds of processor time for 1000 episodes\n{listed}\n{textwrap.fill(note, 110)}",
            fontsize=6.5,
        )


def run(stage: SpeedStage, out: Path) -> None:
    """The stage `speed`: the picture (.pdf, .png) and what is drawn (.csv)."""
    scores = [Path(point.scores) for point in stage.points]
    inputs = [file for each in scores for file in (each, meta_of(each))]
    provenance = Provenance("speed", stage.model_dump(mode="json"), list(dict.fromkeys(inputs)))
    table = tabulate(stage)
    write_table(table, out.with_suffix(".csv"), "%.4g")
    draw(table, stage.note, out)
    provenance.write(out)
