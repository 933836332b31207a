"""Reads the accuracies of single episodes, and what their meta says of the classifier."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from epcore.errors import UserError
from epcore.files import check_exists, meta_of, read_meta, sha256
from epcore.report.config import ScoreColumn
from epcore.report.text_table import CsvLine


def read_scores(scores: ScoreColumn) -> np.ndarray:
    """Accuracies of the episodes `(n,)` in percent."""
    return np.asarray(100 * pd.read_csv(scores.file)[scores.column])


def read_test(test: CsvLine) -> np.ndarray:
    """Accuracies of the episodes `(n,)` in percent, of a test behind a table's cell.

    Raises:
        UserError: if the file is missing, or another than when the table was made.
    """
    file = Path(test["scores"])
    check_exists(file, "score file")
    if sha256(file) != test["sha256"]:
        raise UserError(
            f"score file {file} is another than when its table was made",
            "run the same command again to make the table anew",
        )
    return read_scores(ScoreColumn(file=test["scores"], column=test["score_column"]))


@contextmanager
def reading_classifier(scores: ScoreColumn) -> Iterator[dict[str, Any]]:
    """What the meta says of the classifier: settings, assumptions, what was chosen, its time.

    Raises:
        UserError: if the meta is damaged or lacks what is read of it inside.
    """
    with read_meta(meta_of(Path(scores.file))) as meta:
        yield meta if scores.column == "accuracy" else meta["classifiers"][scores.column]
