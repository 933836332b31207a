"""Names stand once in config files, which stay the same in a run."""

import os
from collections import Counter
from pathlib import Path

from epcore.errors import UserError
from epcore.files import fingerprint, sha256


def check_unique(names: list[str], what: str, location: str) -> None:
    """Raises `UserError` if a name is there twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UserError(f"{location}: {what} {twice[0]!r} is there twice", "rename one")


def short_path(path: Path) -> str:
    """A config file as the user knows it: config/..."""
    return "/".join(path.parts[-3:])


def check_unedited(config: Path, begins: bool) -> None:
    """Raises `UserError` in a job that finds another config than the run that started it.

    Jobs on a cluster read the config again; two configs in one run would be mixed in its results.

    Args:
        config: the config folder.
        begins: whether this is the process that begins the run, whose config counts.
    """
    files = [file for ending in ("yaml", "csv") for file in sorted(config.rglob(f"*.{ending}"))]
    digest = fingerprint(*map(sha256, files))
    if begins:
        os.environ["EPCORE_CONFIG_DIGEST"] = digest
    elif os.environ.get("EPCORE_CONFIG_DIGEST", digest) != digest:
        raise UserError(
            f"{config}/ was edited after this run had begun", "run the same command again"
        )
