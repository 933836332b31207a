"""Names in config files: of what kind they are, and that each is there once."""

import re
from collections import Counter
from pathlib import Path

from epcore.errors import UserError
from epcore.plan.paths import NAME


def check_name(name: str, where: str) -> None:
    """Raises `UserError` unless a name can be part of a path."""
    if not re.fullmatch(NAME, name):
        raise UserError(
            f"{where}: the name {name!r} cannot be part of a path; use small letters, digits and "
            "single hyphens"
        )


def check_unique(names: list[str], what: str, where: str) -> None:
    """Raises `UserError` if a name is there twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UserError(f"{where}: {what} {twice[0]!r} is there twice; rename one")


def shown(path: Path) -> str:
    """A config file as the user knows it: config/..."""
    return "/".join(path.parts[-3:])
