"""What all settings share."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Split = Literal["base", "val", "novel"]


class Settings(BaseModel):
    """Settings that do not change once read; unknown keys, NaN and infinity are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )
