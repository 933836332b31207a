"""Training curves: loss, validation accuracy and learning rate of every epoch."""

import itertools
import re
from pathlib import Path

import pandas as pd

from epcore.files import Provenance, read_meta, user_error_on_failure
from epcore.report.config import Training
from epcore.report.figure import COLORS, facets
from epcore.report.figure_config import CurvesConfig
from epcore.report.numbers import write_table

# Column -> the panel that it is drawn in, and the images that it is of.
MEASURES = {
    "train_loss": ("loss", "training"),
    "val_loss": ("loss", "validation"),
    "val_accuracy": ("validation accuracy, %", "validation"),
    "learning_rate": ("learning rate", "training"),
}
READ = ["epoch", "learning_rate", "train_loss", "val_accuracy", "val_loss"]


def read_curve(training: Training) -> pd.DataFrame:
    """A line for each epoch, from 1 on; accuracy in percent; `kept` is the checkpoint's epoch.

    Raises:
        UserError: if the curve or the meta beside it is damaged.
    """
    path, facts = map(Path, training.files)
    lines = read_epochs(path)
    with read_meta(facts) as meta:
        best = int(meta["best"].get(training.model, meta["best"])["epoch"]) + 1
    lines["kept"] = lines["epoch"] == best
    return lines


def read_epochs(path: Path) -> pd.DataFrame:
    """A curve: a line for each epoch, from 1 on; accuracy in percent.

    Raises:
        UserError: if it is damaged or missing.
    """
    with user_error_on_failure(f"the curve {path} is damaged", "delete it"):
        lines = pd.read_csv(path)[READ].astype(float)
        lines["epoch"] = lines["epoch"].astype(int) + 1
        lines["val_accuracy"] *= 100
    return lines


def tabulate(config: CurvesConfig) -> pd.DataFrame:
    """The curves of all trainings; `trained_as` is the recipe whose checkpoint it is."""
    parts = []
    for training in config.trainings:
        lines = read_curve(training)
        for place, column in enumerate(("recipe", "seed", "phase", "trained_as")):
            lines.insert(place, column, getattr(training, column))
        parts.append(lines)
    return pd.concat(parts, ignore_index=True)


def draw(table: pd.DataFrame, note: str, out: Path) -> None:
    """A row for each recipe, a line for each seed: fine-tunings go on where pretraining ends.

    Of ImageNet-FS a row for the classifier, and for each generator one curve for each K.
    """
    phases = sorted(table["phase"].unique(), key=_order)
    colors = dict(zip(phases, itertools.cycle(COLORS), strict=False))
    pretrained_as = table["trained_as"].where(table["phase"] == "pretraining")
    owner = pretrained_as.groupby(table["recipe"]).transform("first").fillna(table["recipe"])
    shared = "\npretraining of " + owner
    table = table.assign(
        row=table["recipe"] + shared.where(owner != table["recipe"], ""),
        epoch=table["epoch"] + _before(table),
    )
    parts = [
        table.assign(measure=measure, images=images, value=table[column])
        for column, (measure, images) in MEASURES.items()
    ]
    drawn = pd.concat(parts, ignore_index=True)
    below = f"epoch\nStars are the epochs that are kept. {note}"
    with facets(
        out, "relplot", (4.8, 1.0 + 0.95 * table["row"].nunique()), below,
        data=drawn, row="row", col="measure", kind="line", x="epoch", y="value", hue="phase",
        hue_order=phases, palette=colors, style="images", units="seed", estimator=None, linewidth=1,
        marker=".", markersize=4, markeredgewidth=0,
        facet_kws={"sharey": "col", "margin_titles": True},
    ) as grid:  # fmt: skip
        grid.set_ylabels("")
        for row, (losses, accuracies, rates) in zip(grid.row_names, grid.axes, strict=True):
            losses.set_ylim(bottom=0)
            rates.set_yscale("log")
            losses.locator_params(axis="x", integer=True)
            kept = table[table["kept"] & (table["row"] == row)]
            accuracies.scatter(
                kept["epoch"], kept["val_accuracy"], marker="*", zorder=3, s=25,
                color=kept["phase"].map(colors),
            )  # fmt: skip


def _before(table: pd.DataFrame) -> pd.Series:
    """The epochs of pretraining, where a fine-tuning follows it."""
    first = table["phase"] == "pretraining"
    key = [table["recipe"], table["seed"]]
    return first.groupby(key).transform("sum").mask(first, 0)


def _order(phase: str) -> int:
    """Sort key: the shots or exemplars in a training's name; a training without any comes first."""
    number = re.search(r"\d+", phase)
    return int(number[0]) if number else 0


def run(config: CurvesConfig, out: Path) -> None:
    """The stage `curves`: the picture (.pdf, .png) and what is drawn (.csv)."""
    files = [file for training in config.trainings for file in training.files]
    inputs = [Path(file) for file in dict.fromkeys(files)]
    provenance = Provenance("curves", config, inputs)
    table = tabulate(config)
    write_table(table, out.with_suffix(".csv"), "%.6g")
    draw(table, config.note, out)
    provenance.write(out)
