"""A table in long form: our tests, one line for each cell and seed, and the cells.

A cell has our mean and interval beside what the paper prints. Accuracies are in percent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from epcore.files import read_meta, sha256
from epcore.footprint.energy import gone_on_from
from epcore.report.config import MeasuredCell, ScoreColumn, TableConfig, Training
from epcore.report.printed import Place, PrintedCell
from epcore.report.scores import read_scores, reading_classifier
from epcore.report.statistics import Interval, over_trainings, paired
from epcore.report.text_table import CELLS, KEY, RUN, SECONDS, TESTS

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Test:
    """A cell of ours and one seed, with the accuracies of its episodes `(n,)`.

    gaps: the differences to the cell's baseline in each episode `(n,)`, if it has one.
    """

    cell: MeasuredCell
    accuracies: np.ndarray
    gaps: np.ndarray | None

    @property
    def key(self) -> Key:
        return self.cell.block, self.cell.row, self.cell.column


def read_accuracies(config: TableConfig) -> list[Test]:
    """The tests behind the cells of a table.

    Raises:
        UserError: if a score file is damaged.
    """
    tests = []
    for cell in config.cells:
        accuracies = read_scores(cell.scores)
        gaps = paired(accuracies, read_scores(cell.baseline)) if cell.baseline else None
        tests.append(Test(cell, accuracies, gaps))
    return tests


# -- a line for each cell and seed -----------------------------------------------------------------


def tabulate_tests(config: TableConfig, tests: Sequence[Test]) -> pd.DataFrame:
    """One line for each test, in the table's order.

    Columns: block, row, column, seed; mean accuracy and mean difference to the baseline; what the
    classifier assumes, the settings that were chosen for it and their accuracy on validation, and
    the seconds that it takes; seconds and kWh of the trainings; the images that its episodes draw;
    the score file with the accuracies of all episodes, its column and its sha256. What is not among
    the facts of a table is empty.

    Raises:
        UserError: if a meta is damaged.
    """
    lines = []
    for test in tests:
        cell = test.cell
        line: dict[str, object] = {
            **dict(zip(KEY, test.key, strict=True)),
            "seed": cell.seed,
            "accuracy": test.accuracies.mean(),
            "draw": cell.draw,
            "scores": cell.scores.file,
            "score_column": cell.scores.column,
            "sha256": sha256(Path(cell.scores.file)),
        }
        if test.gaps is not None:
            line["difference"] = test.gaps.mean()
        if cell.tells_of_classifier:
            line |= _classifier(cell.scores)
            if "seconds" not in config.table.facts:  # a time, which no other run repeats
                line.pop(SECONDS, None)
        line |= costs(cell.trainings, Path(config.energy))
        lines.append(line)
    return pd.DataFrame(lines, columns=[*TESTS])


def _classifier(scores: ScoreColumn) -> dict[str, object]:
    """What the classifier assumes, what was chosen for it, and how long it takes."""
    with reading_classifier(scores) as meta:
        line: dict[str, object] = {"assumes": str(meta["assumes"])}
        if SECONDS in meta:
            line[SECONDS] = float(meta[SECONDS])
        if settings := meta.get("chosen"):
            line["chosen"] = ", ".join(f"{key} {value}" for key, value in settings.items())
            line["validation_accuracy"] = 100 * float(meta["validation_accuracy"])
    return line


def costs(trainings: Sequence[Training], folder: Path) -> dict[str, object]:
    """Seconds and kWh of all trainings behind a checkpoint.

    Where a training went on after an interruption, its attempts before count too, as far as the
    folder of a scale's energies has them. Without kWh if one of the trainings was not measured.

    Raises:
        UserError: naming a meta file that does not say it.
    """
    if not trainings:
        return {}
    spent = [_cost(training, folder) for training in trainings]
    energies = [kwh for _, kwh in spent if kwh is not None]
    line: dict[str, object] = {"training_seconds": sum(seconds for seconds, _ in spent)}
    if len(energies) == len(spent):
        line["training_kwh"] = sum(energies)
    return line


def _cost(training: Training, folder: Path) -> tuple[float, float | None]:
    """Seconds and, if tracked, kWh."""
    with read_meta(Path(training.files[1]), "delete it") as meta:
        seconds, energy = float(meta["seconds"]), meta.get("energy")
        if not energy or energy["kwh"] is None:
            return seconds, None
        kwh, went_on = float(energy["kwh"]), meta.get("resumed_from_epoch")
        models = went_on.values() if isinstance(went_on, dict) else [went_on]
    if all(epoch is None for epoch in models):
        return seconds, kwh
    before = gone_on_from(folder, energy["job"], energy["attempt"])
    return seconds + before["seconds"].sum(), kwh + before["kwh"].sum()


# -- a line for each cell --------------------------------------------------------------------------


def tabulate_cells(
    config: TableConfig,
    tests: Sequence[Test],
    lines: pd.DataFrame,
    paper: Mapping[Place, PrintedCell],
    rerun: Mapping[Place, PrintedCell],
) -> pd.DataFrame:
    """One line for each cell of the table, printed or ours, in the table's order.

    tests: of `read_accuracies`. lines: of `tabulate_tests`.

    Columns: table, block, row, column; recipe, backbone, data set and protocol of a cell of ours;
    accuracy, interval (95 %, half width), episodes, seeds and
    parameters of this run; baseline, difference and difference_interval: the mean difference to
    another row over the same seeds and episodes; means over seeds of what the trainings cost and
    of the time that the classifier takes, and what it assumes; what the paper prints:
    paper_accuracy, paper_interval, paper_parameters and note; rerun_accuracy and rerun_interval as
    its authors print them of their re-run; source of the row. Empty where there is none.
    `over_trainings` says what intervals are over.
    """
    by_key: dict[Key, list[Test]] = {}
    for test in tests:
        by_key.setdefault(test.key, []).append(test)
    seeds = dict(iter(lines.groupby(list(KEY), sort=False)))
    table, cells = config.table, []
    for block, row, column in table.places:
        key = (block.name, row.name, column.name)
        cell: dict[str, object] = {"table": config.name, **dict(zip(KEY, key, strict=True))}
        if key in by_key:
            baseline = row.baseline or row.baseline_recipe or ""
            cell |= _measured(by_key[key], baseline, table.interval)
            cell |= _means(seeds[key])
        place = (block.name, row.paper or row.name, column.name)
        if place in paper:
            printed = paper[place]
            cell |= {"paper_accuracy": printed["accuracy"]}
            cell |= {"paper_interval": printed["interval"], "note": printed["note"]}
        if place in rerun:
            cell |= {f"rerun_{name}": rerun[place][name] for name in ("accuracy", "interval")}
        kind = "recipe" if table.imagenet_fs is None else "method"
        source = row.source or f"this run, {kind} {row.recipe}"
        cells.append(cell | {"paper_parameters": row.parameters, "source": source})
    frame = pd.DataFrame(cells, columns=[*CELLS])
    return frame.astype({"episodes": "Int64", "seeds": "Int64", "parameters": "Int64"})


def _measured(tests: Sequence[Test], baseline: str, interval: Interval) -> dict[str, object]:
    """A cell of this run: means over seeds, of accuracies and of gaps to the row `baseline`."""
    mean = over_trainings([test.accuracies for test in tests], interval)
    of_checkpoint = Path(tests[0].cell.checkpoint_meta)
    with read_meta(of_checkpoint, "delete it and the checkpoint beside it") as meta:
        parameters = int(meta["parameters"])
    cell: dict[str, object] = {
        **{name: getattr(tests[0].cell, name) for name in RUN},
        "accuracy": mean.value,
        "interval": mean.interval,
        "episodes": len(tests[0].accuracies),
        "seeds": len(tests),
        "parameters": parameters,
    }
    gaps = [test.gaps for test in tests if test.gaps is not None]
    if gaps:
        mean = over_trainings(gaps, interval)
        cell |= {
            "baseline": baseline,
            "difference": mean.value,
            "difference_interval": mean.interval,
        }
    return cell


def _means(lines: pd.DataFrame) -> dict[str, object]:
    """Means over seeds, each where every seed has the number; what the first classifier assumes."""
    means: dict[str, object] = {"assumes": lines["assumes"].iloc[0]}
    for name in ("training_seconds", SECONDS):
        if lines[name].notna().all():
            means[name] = lines[name].mean()
    if lines["training_kwh"].notna().all():
        means["training_kwh"] = f"{lines['training_kwh'].mean():.3g}"
    return means
