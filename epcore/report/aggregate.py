"""A table in long form: our means and intervals beside what the paper prints."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from epcore.errors import UserError
from epcore.files import Provenance
from epcore.plan.printed import Cell, Place, read_printed
from epcore.plan.stages import AggregateStage
from epcore.report.numbers import write_table
from epcore.report.statistics import Interval, mean_with_interval, paired_difference
from epcore.report.text_table import COLUMNS, KEY


def read_scores(path: Path) -> np.ndarray:
    """Accuracies of the episodes `(n,)` in percent.

    Raises:
        UserError: if the file is damaged.
    """
    try:
        scores = pd.read_csv(path, dtype={"accuracy": float})["accuracy"]
        if len(scores) < 2 or scores.isna().any() or not scores.between(0, 1).all():
            raise ValueError("accuracies must be numbers between 0 and 1, at least two")
    except (ValueError, KeyError, OSError) as error:
        raise UserError(
            f"score file {path} is damaged ({error}); delete it and run the same command again"
        ) from None
    return np.asarray(100 * scores)


def read_parameters(path: Path) -> int:
    """The number of parameters that a checkpoint's meta.json states.

    Raises:
        UserError: if the file is damaged.
    """
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["parameters"])
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise UserError(
            f"{path} is damaged ({error}); delete it and the checkpoint beside it and run the "
            "same command again"
        ) from None


def aggregate(
    stage: AggregateStage, paper: dict[Place, Cell], rerun: dict[Place, Cell]
) -> pd.DataFrame:
    """One line per cell of the table, printed or ours, in the table's order.

    Columns: table, block, row, column; accuracy, interval (95 %, half width), episodes and
    parameters of this run; against, difference and difference_interval: the mean difference to
    another row over the same episodes; paper_accuracy, paper_interval, paper_parameters and note
    as the paper prints them; rerun_accuracy and rerun_interval as its authors print them of their
    re-run; source of the row. Accuracies are in percent, empty where there is none.
    """
    ours = {(cell.block, cell.row, cell.column): cell for cell in stage.cells}
    lines = []
    for row in stage.rows:
        for column in stage.columns:
            key = (row.block, row.row, column)
            line: dict[str, object] = {"table": stage.table, **dict(zip(KEY, key, strict=True))}
            if key in ours:
                scores = read_scores(Path(ours[key].scores))
                mean = mean_with_interval(scores, stage.interval)
                parameters = read_parameters(Path(ours[key].checkpoint_meta))
                line |= {"accuracy": mean.value, "interval": mean.interval}
                line |= {"episodes": mean.count, "parameters": parameters}
                line |= _difference(scores, row.against, ours[key].against, stage.interval)
            place = (row.block, row.paper, column)
            if place in paper:
                cell = paper[place]
                line |= {"paper_accuracy": cell["accuracy"], "paper_interval": cell["interval"]}
                line |= {"note": cell["note"]}
            if place in rerun:
                again = rerun[place]
                line |= {"rerun_accuracy": again["accuracy"], "rerun_interval": again["interval"]}
            lines.append(line | {"paper_parameters": row.parameters, "source": row.source})
    frame = pd.DataFrame(lines).reindex(columns=list(COLUMNS))
    return frame.astype({"episodes": "Int64", "parameters": "Int64"})


def _difference(
    scores: np.ndarray, row: str, against: str | None, interval: Interval
) -> dict[str, object]:
    if against is None:
        return {}
    try:
        mean = paired_difference(scores, read_scores(Path(against)), interval)
    except ValueError as error:
        raise UserError(f"{against}: {error}; delete it and run the same command again") from None
    return {"against": row, "difference": mean.value, "difference_interval": mean.interval}


def run(stage: AggregateStage, out: Path, paper: Path | None, rerun: Path | None = None) -> None:
    """The stage `aggregate`: the table, and a meta that leads back to the files of every cell."""
    files = [Path(file) for cell in stage.cells for file in (cell.scores, cell.checkpoint_meta)]
    files += [Path(cell.against) for cell in stage.cells if cell.against]
    files += [file for file in (paper, rerun) if file]
    provenance = Provenance("aggregate", stage.model_dump(mode="json"), files)
    printed = (read_printed(file) if file else {} for file in (paper, rerun))
    frame = aggregate(stage, *printed)
    write_table(frame, out, "%.4f")
    provenance.write(out)
