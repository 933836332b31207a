"""A table in long form: our tests, one line for each cell and seed, and the cells.

A cell has our mean and interval beside what the paper prints. Accuracies are in percent.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from epcore.files import read_meta, sha256
from epcore.footprint.energy import gone_on_from
from epcore.report.config import ScoreColumn, TableConfig, Training
from epcore.report.printed import Place
from epcore.report.scores import read_scores, reading_classifier
from epcore.report.statistics import Estimate, normal, student
from epcore.report.text_table import CELLS, KEY, RUN, SECONDS, TESTS, CsvLine

# A mean -> half the width of its interval.
INTERVALS = {"accuracy": "interval", "difference": "difference_interval"}

# -- a line for each cell and seed -----------------------------------------------------------------


def tabulate_tests(config: TableConfig) -> pd.DataFrame:
    """One line for each cell of ours and seed, in the table's order.

    Columns: block, row, column, seed; recipe, backbone, data set and protocol; mean accuracy and
    mean difference to the baseline, each with its interval over episodes (95 %, half width), and
    the number of episodes; parameters of the network; what the classifier assumes, the settings
    that were chosen for it and their accuracy on validation, and the seconds that it takes; seconds
    and kWh of the trainings; the images that its episodes draw; the score file with the accuracies
    of all episodes, its column and its sha256. What is not among the facts of a table is empty.

    Raises:
        UserError: if a score file or a meta is damaged.
    """
    lines = []
    mean = student if config.table.imagenet_fs is None else normal
    for cell in config.cells:
        accuracies = read_scores(cell.scores)
        line: dict[str, object] = {
            **{name: getattr(cell, name) for name in (*KEY, *RUN, "seed", "draw")},
            **_named("accuracy", mean(accuracies)),
            "episodes": len(accuracies),
            "parameters": _parameters(Path(cell.checkpoint_meta)),
            "scores": cell.scores.file,
            "score_column": cell.scores.column,
            "sha256": sha256(Path(cell.scores.file)),
        }
        if cell.baseline:
            baseline = read_scores(cell.baseline)
            count = min(len(accuracies), len(baseline))  # a test may have the first episodes alone
            line |= _named("difference", mean(accuracies[:count] - baseline[:count]))
        if cell.tells_of_classifier:
            line |= _classifier(cell.scores)
            if "seconds" not in config.table.facts:  # a time, which no other run repeats
                line.pop(SECONDS, None)
        line |= costs(cell.trainings, Path(config.energy))
        lines.append(line)
    return pd.DataFrame(lines, columns=[*TESTS])


def _named(name: str, mean: Estimate) -> dict[str, object]:
    """A mean and its interval, by their names in a table."""
    return {name: mean.value, INTERVALS[name]: mean.half_width}


def _parameters(checkpoint_meta: Path) -> int:
    with read_meta(checkpoint_meta, "delete it and the checkpoint beside it") as meta:
        return int(meta["parameters"])


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
    tests: pd.DataFrame,
    printed: Mapping[Place, CsvLine],
) -> pd.DataFrame:
    """One line for each cell of the table, printed or ours, in the table's order.

    tests: of `tabulate_tests`.

    Columns: table, block, row, column; recipe, backbone, data set and protocol of a cell of ours;
    accuracy, interval (95 %, half width), episodes, seeds and parameters of this run; baseline,
    difference and difference_interval: the mean difference to another row over the same seeds and
    episodes; means over seeds of what the trainings cost and of the time that the classifier takes,
    and what it assumes; what others print: paper_accuracy, paper_interval, paper_parameters and
    note; source of the row. Empty where there is none.
    Intervals are over trainings, or over the episodes of a single one.
    """
    measured = dict(iter(tests.groupby(list(KEY), sort=False)))
    table, cells = config.table, []
    for block, row, column in table.places:
        key = (block.name, row.name, column.name)
        cell: dict[str, object] = {"table": config.name, **dict(zip(KEY, key, strict=True))}
        if key in measured:
            cell |= _measured(measured[key])
            if "difference" in cell:
                cell["baseline"] = row.baseline
        place = (block.name, row.paper or row.name, column.name)
        if place in printed:
            cell |= {f"paper_{name}": printed[place][name] for name in ("accuracy", "interval")}
            cell["note"] = printed[place]["note"]
        kind = "recipe" if table.imagenet_fs is None else "method"
        source = row.source or f"this run, {kind} {row.recipe}"
        cells.append(cell | {"paper_parameters": row.parameters, "source": source})
    frame = pd.DataFrame(cells, columns=[*CELLS])
    return frame.astype({"episodes": "Int64", "seeds": "Int64", "parameters": "Int64"})


def _measured(tests: pd.DataFrame) -> dict[str, object]:
    """A cell of this run: its means over seeds, each where every seed has the number."""
    first = tests.iloc[0]
    cell: dict[str, object] = {
        **{name: first[name] for name in (*RUN, "episodes", "parameters", "assumes")},
        "seeds": len(tests),
    }
    for name, interval in INTERVALS.items():
        if len(tests) == 1 and pd.notna(first[name]):
            cell |= {name: first[name], interval: first[interval]}
        elif tests[name].notna().all():
            cell |= _named(name, student(tests[name].to_numpy(dtype=float)))
    for name in ("training_seconds", SECONDS):
        cell[name] = tests[name].mean(skipna=False)
    if tests["training_kwh"].notna().all():
        cell["training_kwh"] = f"{tests['training_kwh'].mean():.3g}"
    return cell
