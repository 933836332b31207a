"""How far apart two recipes are while they train, epoch by epoch."""

from pathlib import Path

import pandas as pd

from epcore.files import Provenance, curve_of
from epcore.report.curves import read_epochs
from epcore.report.figure import BAR, COLORS, facets
from epcore.report.figure_config import GapConfig
from epcore.report.numbers import write_table


def tabulate(config: GapConfig) -> pd.DataFrame:
    """A line for each pair, seed and epoch that both have: `gap` of validation accuracy, points."""
    parts = []
    for pair in config.pairs:
        of_pair, of_baseline = (
            read_epochs(curve_of(Path(file))) for file in (pair.checkpoint, pair.baseline)
        )
        both = of_pair.merge(of_baseline, on="epoch", suffixes=("", "_baseline"))
        gap = both["val_accuracy"] - both["val_accuracy_baseline"]
        parts.append(
            pd.DataFrame({"epoch": both["epoch"], "gap": gap}).assign(
                panel=pair.panel, line=pair.line, seed=pair.seed
            )
        )
    return pd.concat(parts, ignore_index=True)[["panel", "line", "seed", "epoch", "gap"]]


def draw(table: pd.DataFrame, label: str, note: str, out: Path) -> None:
    """A panel for each batch, a line for each length: mean over seeds, band from least to most."""
    lasts = sorted(table.groupby("line")["epoch"].max())
    with facets(
        out, "relplot", (4.8, 2.6), f"epoch\n{note}",
        data=table, col="panel", kind="line", x="epoch", y="gap", hue="line",
        palette=COLORS[: len(lasts)], errorbar=BAR, linewidth=1,
    ) as grid:  # fmt: skip
        grid.refline(y=0, color="0.6", linewidth=0.8, linestyle="-")
        grid.set(xscale="log", ylabel=f"{label} in validation,\npoints")
        grid.set(xticks=[1, *lasts], xticklabels=[1, *lasts])
        for panel in grid.axes.flat:
            panel.minorticks_off()


def run(config: GapConfig, out: Path) -> None:
    """The stage `gap`: the picture (.pdf, .png) and what is drawn (.csv)."""
    checkpoints = [file for pair in config.pairs for file in (pair.checkpoint, pair.baseline)]
    inputs = [curve_of(Path(file)) for file in dict.fromkeys(checkpoints)]
    provenance = Provenance("gap", config, inputs)
    table = tabulate(config)
    write_table(table, out.with_suffix(".csv"), "%.6g")
    draw(table, config.label, config.note, out)
    provenance.write(out)
