"""CSV files whose cells stay text, so that 48.70 is not turned into 48.7."""

from pathlib import Path

import pandas as pd

from epcore.errors import UserError

KEY = ("block", "row", "column")
# Of an aggregated table.
COLUMNS = (
    *("table", *KEY, "accuracy", "interval", "episodes", "parameters"),
    *("paper_accuracy", "paper_interval", "paper_parameters", "note", "source"),
)


def read_text_table(path: Path, columns: tuple[str, ...], remedy: str) -> pd.DataFrame:
    """A CSV file that has at least these columns, empty cells as empty texts.

    Raises:
        UserError: if it is missing, no CSV or lacks a column.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        missing = [column for column in columns if column not in table]
        if missing:
            raise ValueError(f"the column {missing[0]!r} is missing")
    except (ValueError, OSError) as error:
        raise UserError(f"table {path} cannot be read ({error}); {remedy}") from None
    return table
