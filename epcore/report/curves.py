"""Training curves: loss, validation accuracy and learning rate of every epoch."""

import itertools
import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from epcore.errors import UserError
from epcore.files import Provenance
from epcore.plan.stages import CurvesStage, Training
from epcore.report.figure import COLORS, panels
from epcore.report.numbers import write_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Above the accuracies, as a share of their range.
ROOM_FOR_NUMBERS = 0.3
READ = ["epoch", "learning_rate", "train_loss", "val_accuracy", "val_loss"]


def read_curve(training: Training) -> pd.DataFrame:
    """A line for each epoch, from 1 on; accuracy in percent; `kept` is the checkpoint's epoch.

    Raises:
        UserError: if the curve or the meta beside it is damaged.
    """
    path, facts = map(Path, training.files)
    try:
        lines = read_epochs(path)
        kept = json.loads(facts.read_text(encoding="utf-8"))["best"]
        best = int(kept.get(training.model, kept)["epoch"]) + 1
        if best not in lines["epoch"].to_numpy():
            raise ValueError("the epoch that was kept is missing")
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise UserError(
            f"the curve {path} or {facts.name} beside it is damaged ({error}); delete both and run "
            "the same command again"
        ) from None
    lines["kept"] = lines["epoch"] == best
    return lines


def read_epochs(path: Path) -> pd.DataFrame:
    """A curve: a line for each epoch, from 1 on; accuracy in percent.

    Raises:
        ValueError, KeyError, OSError: if it is damaged or missing.
    """
    lines = pd.read_csv(path)[READ].astype(float)
    if lines.isna().any(axis=None):
        raise ValueError("a number is missing")
    lines["epoch"] = lines["epoch"].astype(int) + 1
    lines["val_accuracy"] *= 100
    return lines


def tabulate(stage: CurvesStage) -> pd.DataFrame:
    """The curves of all trainings; `trained_as` is the recipe whose checkpoint it is."""
    parts = []
    for training in stage.trainings:
        lines = read_curve(training)
        for place, column in enumerate(("recipe", "seed", "phase", "trained_as")):
            lines.insert(place, column, getattr(training, column))
        parts.append(lines)
    return pd.concat(parts, ignore_index=True)


def draw(table: pd.DataFrame, note: str, out: Path) -> None:
    """A row for each recipe, a line for each seed: fine-tunings go on where pretraining ends.

    Of ImageNet-FS a row for the classifier, and for each generator one curve for each K.
    """
    recipes = list(dict.fromkeys(table["recipe"]))
    phases = sorted(table["phase"].unique(), key=_order)
    colors = dict(zip(phases, itertools.cycle(COLORS), strict=False))
    size = {"width": 4.8, "height": 1.0 + 0.95 * len(recipes)}
    with panels(out, len(recipes), 3, **size, sharex=True, sharey="col") as (canvas, axes):
        for row, recipe in zip(axes, recipes, strict=True):
            _row(row, table[table["recipe"] == recipe], colors)
        low, high = axes[0, 1].get_ylim()
        axes[0, 1].set_ylim(low, high + ROOM_FOR_NUMBERS * (high - low))
        for panel, title in zip(
            axes[0], ("loss", "validation accuracy, %", "learning rate"), strict=True
        ):
            panel.set_title(title, fontsize=8)
        handles = [axes[0, 0].plot([], [], color=colors[phase])[0] for phase in phases]
        handles += [axes[0, 0].plot([], [], color="0.3", linestyle=kind)[0] for kind in ("-", "--")]
        handles += axes[0, 0].plot([], [], "*", color="0.3")
        kinds = ("loss in training", "in validation", "epoch that is kept, its accuracy above")
        names = [*phases, *kinds]
        canvas.legend(handles, names, loc="outside upper center", ncols=3, fontsize=7)
        canvas.supxlabel(f"epoch\n{textwrap.fill(note, 95)}", fontsize=7)


def _order(phase: str) -> int:
    """By the shots or exemplars in its name; the first training has none and comes first."""
    number = re.search(r"\d+", phase)
    return int(number[0]) if number else 0


def _row(row: "list[Axes]", table: pd.DataFrame, colors: dict[str, str]) -> None:
    losses, accuracies, rates = row
    pretrained = table[table["phase"] == "pretraining"].groupby("seed").size()
    phases = list(table.groupby("phase", sort=False))
    for place, (phase, trainings) in enumerate(phases[::-1]):
        style: Any = {"color": colors[str(phase)], "linewidth": 1, "marker": ".", "markersize": 2}
        for seed, lines in trainings.groupby("seed"):
            epochs = lines["epoch"] + (0 if phase == "pretraining" else pretrained.get(seed, 0))
            losses.plot(epochs, lines["train_loss"], **style)
            losses.plot(epochs, lines["val_loss"], linestyle="--", **style)
            accuracies.plot(epochs, lines["val_accuracy"], **style)
            rates.plot(epochs, lines["learning_rate"], drawstyle="steps-mid", **style)
            kept = lines[lines["kept"]]
            accuracies.plot(epochs[kept.index], kept["val_accuracy"], "*", color=style["color"])
        best = trainings.loc[trainings["kept"], "val_accuracy"].mean()
        side, size = 1 - place * min(0.27, 1 / len(phases)), 6 if len(phases) <= 3 else 5
        accuracies.text(
            side, 1, f"{best:.1f}", ha="right", va="top",
            fontsize=size, color=style["color"], transform=accuracies.transAxes,
        )  # fmt: skip
    rates.set_yscale("log")
    losses.set_ylim(bottom=0)
    for panel in row:
        panel.locator_params(axis="x", integer=True)
    recipe, owner = table[["recipe", "trained_as"]].iloc[0]
    shared = f"\npretraining of\n{owner}" if owner != recipe else ""
    losses.set_ylabel(f"{recipe}{shared}", rotation=0, ha="right", va="center", fontsize=7)


def run(stage: CurvesStage, out: Path) -> None:
    """The stage `curves`: the picture (.pdf, .png) and what is drawn (.csv)."""
    files = [file for training in stage.trainings for file in training.files]
    inputs = [Path(file) for file in dict.fromkeys(files)]
    provenance = Provenance("curves", stage.model_dump(mode="json"), inputs)
    table = tabulate(stage)
    write_table(table, out.with_suffix(".csv"), "%.6g")
    draw(table, stage.note, out)
    provenance.write(out)
