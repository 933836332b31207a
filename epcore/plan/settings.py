"""What all settings share."""

import re
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PositiveInt,
)

from epcore.markup import check

Split = Literal["base", "val", "novel"]


class Settings(BaseModel):
    """Settings that do not change once read; unknown keys, NaN and infinity are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )


def _fraction(value: Any) -> Any:
    """`1/4`, `0.25` or `1` as an exact fraction; not `1e999999999`, which has as many digits."""
    if isinstance(value, Fraction):
        return value
    try:
        if re.fullmatch(r"\d{1,20}([/.]\d{1,20})?", str(value), re.ASCII):
            return Fraction(str(value))
    except ZeroDivisionError:
        pass
    raise ValueError("expected a ratio such as 1/4 or 0.25")


# Text in the markup of epcore.markup.
Markup = Annotated[str, AfterValidator(check)]
Ratio = Annotated[
    Fraction,
    BeforeValidator(_fraction),
    Field(gt=0),
    PlainSerializer(str, return_type=str),
]
Probability = Annotated[float, Field(ge=0, lt=1)]


class JobResources(Settings):
    """What a job asks of its machine."""

    threads: PositiveInt = Field(description="processor cores of a job")
    mem_mb: PositiveInt = Field(description="memory of a job, in MB")
    runtime: PositiveInt = Field(description="minutes that a job may take")
