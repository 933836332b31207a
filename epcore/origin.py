"""Which data set a file was made of, by what the meta files beside it say."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from epcore.errors import UserError
from epcore.files import meta_of, sha256

STORE = "store.json"


def check_one_store(files: Iterable[Path]) -> None:
    """Raises `UserError` if two of the files are of different data sets.

    A file is of the store that it is, or that its meta file says it was made of; of one without a
    meta, such as weights from elsewhere, nothing is known.
    """
    found: dict[str, Path] = {}
    for file in files:
        digest = sha256(file) if file.name == STORE else _store_of(file)
        if digest is not None:
            found.setdefault(digest, file)
    if len(found) > 1:
        one, other = list(found.values())[:2]
        raise UserError(
            f"{other} is of another data set than {one}, by what the meta files beside them say "
            "they were made of; give files of one data set, or delete what is left of another and "
            "run the same command again"
        )


def _store_of(file: Path) -> str | None:
    """The sha256 of the store; `Provenance` refuses a damaged meta."""
    try:
        inputs: dict[str, Any] = json.loads(meta_of(file).read_text(encoding="utf-8"))["inputs"]
        named = [digest for path, digest in inputs.items() if Path(path).name == STORE]
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return None
    return named[0] if len(named) == 1 else None
