"""What a file was made of, by what the meta files say: nothing is known of one without."""

import json
from collections.abc import Iterable
from pathlib import Path

from epcore.errors import UserError
from epcore.files import meta_of, require, sha256

STORE = "store.json"
REMEDY = "delete what is left of another and run the same command again"


def check_one_store(files: Iterable[Path]) -> None:
    """Raises `UserError` if two of the files are of different data sets.

    A file is of the store that it is, or that its meta file says it was made of; of one without a
    meta, such as weights from elsewhere, nothing is known.
    """
    _check_one(files, STORE, "data set")


def check_one_validation(checkpoints: Iterable[Path]) -> None:
    """Raises `UserError` if two checkpoints were validated on different episodes."""
    _check_one(checkpoints, ".npz", "choice of validation episodes")


def check_made_of(file: Path, inputs: Iterable[Path]) -> None:
    """Raises `UserError` if a file was made of others than the inputs."""
    made_of = set(_inputs_of(file).values())
    for source in inputs:
        if made_of and sha256(source) not in made_of:
            raise UserError(
                f"{file} was not made of {source}, by what the meta file beside it says",
                f"give the one that it was made of, or {REMEDY}",
            )


def check_same_network(base: Path, features: Path) -> None:
    """Raises `UserError` if base classes and features are of different checkpoints or data."""
    of_base, of_features = (set(_inputs_of(file).values()) for file in (base, features))
    if of_features and not of_base <= of_features:
        raise UserError(
            f"{base} is of another checkpoint or data set than {features}, by what the meta "
            "files beside them say they were made of",
            f"give files of one network, or {REMEDY}",
        )


def _check_one(files: Iterable[Path], ending: str, what: str) -> None:
    by_digest: dict[str, Path] = {}
    for file in files:
        if file.name == STORE:
            require(file, "data set")
        of = {str(file): sha256(file)} if file.name == ending else _inputs_of(file)
        digests = [digest for path, digest in of.items() if path.endswith(ending)]
        if len(digests) == 1:
            by_digest.setdefault(digests[0], file)
    if len(by_digest) > 1:
        first, second = list(by_digest.values())[:2]
        raise UserError(
            f"{second} is of another {what} than {first}, by what the meta files beside them "
            "say they were made of",
            f"give files of one {what}, or {REMEDY}",
        )


def _inputs_of(file: Path) -> dict[str, str]:
    """Path and sha256 of what it was made of; `Provenance` refuses a damaged meta."""
    try:
        facts = json.loads(meta_of(file).read_text(encoding="utf-8"))
        return dict(facts["inputs"]) if file.name in facts["made"] else {}
    except (ValueError, KeyError, TypeError, OSError):
        return {}
