"""What all settings share."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Split = Literal["base", "val", "novel"]


class Settings(BaseModel):
    """Settings that do not change once read; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
