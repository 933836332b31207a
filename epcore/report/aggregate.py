"""A table in long form: our means and intervals beside what the paper prints."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from epcore.errors import UserError
from epcore.files import reading_meta
from epcore.footprint.ledger import gone_on_from, read
from epcore.report.config import MeasuredCell, ScoreColumn, TableConfig, Training
from epcore.report.curves import read_curve
from epcore.report.printed import Cell, Place
from epcore.report.scores import read_scores, reading_classifier
from epcore.report.statistics import Interval, over_trainings, paired
from epcore.report.text_table import COLUMNS, KEY, SECONDS


def aggregate(
    config: TableConfig, paper: dict[Place, Cell], rerun: dict[Place, Cell]
) -> pd.DataFrame:
    """One line per cell of the table, printed or ours, in the table's order.

    Columns: table, block, row, column; accuracy, interval (95 %, half width), episodes, seeds and
    parameters of this run; baseline, difference and difference_interval: the mean difference to
    another row over the same seeds and episodes; accuracies and differences of each seed;
    assumes, chosen and validation_accuracies, see `_methods`; seconds_per_1000_episodes only where
    the table has them, as of all measurements another run has others;
    pretraining_fell, pretraining_epochs, finetuning_fell and finetuning_epochs, see `rate_falls`;
    training_seconds and training_kwh, see `costs`;
    what the paper prints: paper_accuracy, paper_interval, paper_parameters and note; rerun_accuracy
    and rerun_interval as its authors print them of their re-run; source of the row. Accuracies are
    in percent, empty where there is none. `over_trainings` says what intervals are over.
    """
    ours: dict[tuple[str, str, str], list[MeasuredCell]] = {}
    for cell in config.cells:
        ours.setdefault((cell.block, cell.row, cell.column), []).append(cell)
    table, lines = config.table, []
    for block, row, column in table.places:
        key = (block.name, row.name, column.name)
        line: dict[str, object] = {"table": config.name, **dict(zip(KEY, key, strict=True))}
        if key in ours:
            other = row.baseline or row.baseline_recipe or ""
            line |= _measured(ours[key], other, table.interval)
            trainings = [training for cell in ours[key] for training in cell.trainings]
            line |= rate_falls(trainings)
            line |= costs(trainings, len(ours[key]), Path(config.ledger))
            line |= _methods(ours[key], table.seconds)
        place = (block.name, row.paper or row.name, column.name)
        if place in paper:
            printed = paper[place]
            line |= {"paper_accuracy": printed["accuracy"]}
            line |= {"paper_interval": printed["interval"], "note": printed["note"]}
        if place in rerun:
            again = rerun[place]
            line |= {"rerun_accuracy": again["accuracy"], "rerun_interval": again["interval"]}
        kind = "recipe" if table.imagenet_fs is None else "method"
        source = row.source or f"this run, {kind} {row.recipe}"
        lines.append(line | {"paper_parameters": row.parameters, "source": source})
    frame = pd.DataFrame(lines).reindex(columns=[*COLUMNS, *([SECONDS] * table.seconds)])
    return frame.astype({"episodes": "Int64", "seeds": "Int64", "parameters": "Int64"})


def _measured(seeds: list[MeasuredCell], other: str, interval: Interval) -> dict[str, object]:
    """What a line says of this run, from a cell for each seed; `other` is the row compared with."""
    scores = [read_scores(cell.scores) for cell in seeds]
    mean = over_trainings(scores, interval)
    of_checkpoint = Path(seeds[0].checkpoint_meta)
    with reading_meta(of_checkpoint, "delete it and the checkpoint beside it") as meta:
        parameters = int(meta["parameters"])
    line: dict[str, object] = {
        "accuracy": mean.value,
        "interval": mean.interval,
        "episodes": len(scores[0]),
        "seeds": len(seeds),
        "parameters": parameters,
        "accuracies": _listed(scores),
    }
    gaps = [
        _gap(mine, cell.baseline)
        for mine, cell in zip(scores, seeds, strict=True)
        if cell.baseline is not None
    ]
    if not gaps:
        return line
    mean = over_trainings(gaps, interval)
    return line | {
        "baseline": other,
        "difference": mean.value,
        "difference_interval": mean.interval,
        "differences": _listed(gaps),
    }


def rate_falls(trainings: Iterable[Training]) -> dict[str, str]:
    """For each phase the epoch after which the learning rate first fell, and the epochs trained.

    Epochs count from 1. A rate that no epoch saw fall "never" fell. Several trainings of a phase
    stand one after another, with a space between them.
    """
    found: dict[str, list[str]] = {}
    for training in trainings:
        curve = read_curve(training)
        phase = "pretraining" if training.phase == "pretraining" else "finetuning"
        lower = curve["epoch"][curve["learning_rate"] < curve["learning_rate"].iloc[0]]
        fell = "never" if lower.empty else str(lower.iloc[0] - 1)
        found.setdefault(f"{phase}_fell", []).append(fell)
        found.setdefault(f"{phase}_epochs", []).append(str(len(curve)))
    return {name: " ".join(values) for name, values in found.items()}


def costs(trainings: Sequence[Training], seeds: int, ledger: Path) -> dict[str, object]:
    """Seconds and kWh of all trainings behind a checkpoint, the mean over seeds.

    One that went on from a saved state counts with the attempts before it that the scale's ledger
    tells of. kWh only if energy was tracked.

    Raises:
        UserError: naming a meta file that does not say it.
    """
    if not trainings:
        return {}
    told = [_cost(training, ledger) for training in trainings]
    line: dict[str, object] = {"training_seconds": sum(seconds for seconds, _ in told) / seeds}
    energies = [kwh for _, kwh in told if kwh is not None]
    if len(energies) == len(told):
        line["training_kwh"] = f"{sum(energies) / seeds:.3g}"
    return line


def _cost(training: Training, ledger: Path) -> tuple[float, float | None]:
    """Seconds and, if tracked, kWh."""
    with reading_meta(Path(training.files[1]), "delete it") as meta:
        seconds, energy = float(meta["seconds"]), meta.get("energy")
        if not energy:
            return seconds, None
        kwh, went_on = float(energy["kwh"]), meta.get("resumed_from_epoch")
        models = went_on.values() if isinstance(went_on, dict) else [went_on]
    if all(epoch is None for epoch in models) or not ledger.exists():
        return seconds, kwh
    before = gone_on_from(energy.get("attempt"), read(ledger))
    return seconds + sum(e.seconds for e in before), kwh + sum(e.kwh for e in before)


def _methods(seeds: list[MeasuredCell], timed: bool) -> dict[str, object]:
    """What the classifier assumes; of each seed the settings that were chosen, and their accuracy.

    Accuracies are on validation, in percent. Also how long it takes, the mean over seeds.
    """
    assumes, seconds, chosen, accuracies = [], [], [], []
    for cell in seeds:
        if not cell.tells_of_classifier:
            continue
        with reading_classifier(cell.scores) as meta:
            assumes.append(str(meta["assumes"]))
            if timed and SECONDS in meta:
                seconds.append(float(meta[SECONDS]))
            if settings := meta.get("chosen"):
                chosen.append(", ".join(f"{key} {value}" for key, value in settings.items()))
                accuracies.append(100 * float(meta["validation_accuracy"]))
    if not assumes:
        return {}
    line: dict[str, object] = {"assumes": assumes[0]}
    if len(seconds) == len(assumes):
        line[SECONDS] = sum(seconds) / len(seconds)
    if len(chosen) == len(assumes):
        line["chosen"] = "; ".join(chosen)
        line["validation_accuracies"] = " ".join(f"{value:.4f}" for value in accuracies)
    return line


def _gap(scores: np.ndarray, baseline: ScoreColumn) -> np.ndarray:
    """In each episode."""
    try:
        return paired(scores, read_scores(baseline))
    except ValueError as error:
        raise UserError(
            f"{baseline.file}: {error}; delete it and run the same command again"
        ) from None


def _listed(seeds: list[np.ndarray]) -> str:
    """The mean of each seed."""
    return " ".join(f"{np.mean(each):.4f}" for each in seeds)
