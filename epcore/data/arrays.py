"""Files of numpy arrays (.npz), written whole or not at all and read with care."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from epcore.errors import UserError
from epcore.files import atomic, check_exists

T = TypeVar("T")


def save_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Writes the arrays by name; the same arrays give the same bytes."""
    with atomic(path) as temporary:
        # mypy takes the arrays for numpy's own keyword arguments.
        np.savez(temporary, **arrays)  # type: ignore[arg-type]


def load_arrays(path: Path, kind: Callable[..., T], names: tuple[str, ...], what: str) -> T:
    """`kind` of the named arrays.

    Raises:
        UserError: if the file is missing or damaged, or `kind` refuses its arrays.
    """
    check_exists(path, what)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if missing := set(names) - set(arrays.files):
                raise UserError(
                    f"{path} is no {what}, which has the arrays {', '.join(names)}: "
                    f"{', '.join(sorted(missing))} missing",
                    "give another file",
                )
            return kind(*(arrays[name] for name in names))
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib, numpy and `kind` each raise their own
        raise UserError(
            f"{what} {path} is damaged ({error})",
            "delete it and run the same command again to make it anew",
        ) from None
