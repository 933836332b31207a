"""How far apart two recipes are while they train, epoch by epoch."""

import textwrap
from pathlib import Path

import pandas as pd

from epcore.errors import UserError
from epcore.files import Provenance
from epcore.plan.paths import curve
from epcore.plan.stages import GapStage
from epcore.report.curves import read_epochs
from epcore.report.figure import COLORS, panels
from epcore.report.numbers import write_table


def tabulate(stage: GapStage) -> pd.DataFrame:
    """A line for each pair, seed and epoch that both have: `gap` of validation accuracy, points."""
    parts = []
    for pair in stage.pairs:
        one, other = (_epochs(curve(file)) for file in (pair.checkpoint, pair.baseline))
        both = one.merge(other, on="epoch", suffixes=("", "_baseline"))
        gap = both["val_accuracy"] - both["val_accuracy_baseline"]
        parts.append(
            pd.DataFrame({"epoch": both["epoch"], "gap": gap}).assign(
                panel=pair.panel, line=pair.line, seed=pair.seed
            )
        )
    return pd.concat(parts, ignore_index=True)[["panel", "line", "seed", "epoch", "gap"]]


def _epochs(path: str) -> pd.DataFrame:
    try:
        return read_epochs(Path(path))
    except (ValueError, KeyError, OSError) as error:
        raise UserError(
            f"the curve {path} is damaged ({error}); delete it and run the same command again"
        ) from None


def draw(table: pd.DataFrame, label: str, note: str, out: Path) -> None:
    """A panel for each batch, a line for each length: mean over seeds, band from least to most."""
    names, lines = (list(dict.fromkeys(table[key])) for key in ("panel", "line"))
    with panels(out, 1, len(names), width=4.8, height=2.6, sharey=True) as (canvas, axes):
        for panel, name in zip(axes[0], names, strict=True):
            panel.axhline(0, color="0.6", linewidth=0.8)
            for line, color in zip(lines, COLORS, strict=False):
                shown = table[(table["panel"] == name) & (table["line"] == line)]
                gaps = shown.groupby("epoch")["gap"]
                low, mean, high = gaps.min(), gaps.mean(), gaps.max()
                panel.fill_between(mean.index, low, high, color=color, alpha=0.25, linewidth=0)
                panel.plot(mean.index, mean, color=color, linewidth=1, label=line)
            panel.set_title(name)
            panel.set_xscale("log")
            ticks = sorted(table.groupby("line")["epoch"].max().unique())
            panel.set_xticks([1, *ticks], ["1", *map(str, ticks)])
            panel.minorticks_off()
        axes[0, 0].set_ylabel(f"{label} in validation,\npoints")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=7)
        canvas.supxlabel(f"epoch\n{textwrap.fill(note, 95)}", fontsize=7)


def run(stage: GapStage, out: Path) -> None:
    """The stage `gap`: the picture (.pdf, .png) and what is drawn (.csv)."""
    files = [curve(file) for pair in stage.pairs for file in (pair.checkpoint, pair.baseline)]
    inputs = [Path(file) for file in dict.fromkeys(files)]
    provenance = Provenance("gap", stage.model_dump(mode="json"), inputs)
    table = tabulate(stage)
    write_table(table, out.with_suffix(".csv"), "%.6g")
    draw(table, stage.label, stage.note, out)
    provenance.write(out)
