"""Names in config files that are parts of the paths of results."""

import re
from typing import Annotated

from pydantic import AfterValidator

NAME = r"[a-z0-9]+(-[a-z0-9]+)*"


def _fit_for_paths(name: str) -> str:
    if not re.fullmatch(NAME, name):
        raise ValueError("expected small letters, digits and single hyphens, for paths")
    return name


Name = Annotated[str, AfterValidator(_fit_for_paths)]
