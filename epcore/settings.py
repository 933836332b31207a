"""Settings as frozen pydantic models, and messages that name a wrong one and the remedy."""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PositiveInt,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from epcore.errors import UserError
from epcore.files import canonical_json


class Settings(BaseModel):
    """Settings that do not change once read; unknown keys, NaN and infinity are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, content: Any) -> Any:
        """Tells of a misspelled key before the key that is missing for it."""
        if isinstance(content, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in content:
                if key not in known:
                    facts = {"key": key, "near": suggest(key, known)}
                    raise PydanticCustomError("unknown_key", "unknown key {key}{near}", facts)
        return content


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


Ratio = Annotated[
    Fraction,
    BeforeValidator(_fraction),
    Field(gt=0),
    PlainSerializer(str, return_type=str),
]
Probability = Annotated[float, Field(ge=0, lt=1)]


def check_named(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of something that is called by its name; `ValueError` unless they have it."""
    if not isinstance(settings.get("name"), str):
        raise ValueError("the key 'name' is missing; say which one, as in name: ridge")
    return settings


class StageConfig(Settings):
    """What every stage's config has.

    stage_version: raised by hand whenever a stage's code changes its results, which re-runs it.
    """

    stage_version: int


class ComputeConfig(StageConfig):
    """Compute with torch.

    threads: of the computation. Sums in another number of threads have another order, so results
    depend on it; a machine with fewer cores is slower and gives the same.
    """

    threads: PositiveInt = 1


def config_text(settings: Settings) -> str:
    """A stage's config as canonical JSON, of which the digest is made."""
    return canonical_json(settings.model_dump(mode="json"))


T = TypeVar("T")
# Made once for a type: that takes longer than to use it.
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
# What pydantic calls by the names of Python's types.
EXPECTED = {
    "model_type": "expected a mapping of keys to values",
    "model_attributes_type": "expected a mapping of keys to values",
    "dict_type": "expected a mapping of keys to values",
    "tuple_type": "expected a list",
    "too_short": "expected a list that is not empty",
}


def validate(kind: type[T], content: Any, location: str, advice: str = "") -> T:
    """Validates `content`, as it stands in a file, as the type `kind`.

    Raises:
        UserError: naming the first wrong key, its value and what is expected; it ends with
            `advice` where a key is missing.
    """
    try:
        validated: T = _adapter(kind).validate_python(content)
        return validated
    except ValidationError as error:
        problem = _problem(content, _worst(error.errors(), content), advice)
        raise UserError(f"{location}: {problem}") from None


def _worst(errors: list[ErrorDetails], content: Any) -> ErrorDetails:
    """The error that a message tells of.

    Of a value that may be one thing or another, the reading in which the mistake is deepest is the
    one that was meant.
    """
    place = _keys_of(errors[0], content)
    at_place = [error for error in errors if _keys_of(error, content)[: len(place)] == place]
    return max(at_place, key=lambda error: len(_keys_of(error, content)))


def _problem(content: Any, error: ErrorDetails, advice: str) -> str:
    """What is wrong, in the words of the file."""
    keys = _keys_of(error, content)
    place = ".".join(map(str, keys))
    if error["type"] == "unknown_key":
        return f"unknown key {place!r}{error['ctx']['near']}"
    if error["type"] == "union_tag_invalid":
        tag, kinds = error["ctx"]["tag"], re.findall("'(.*?)'", error["ctx"]["expected_tags"])
        return f"{place}: unknown kind {tag!r}{suggest(tag, kinds)}"
    if error["type"] == "missing":
        return f"the key {place!r} is missing{advice}"
    expected = EXPECTED.get(error["type"], error["msg"]).removeprefix("Value error, ")
    return f"{place + ': ' if place else ''}{expected}, got {_preview(error['input'])}"


def pick(registry: Mapping[str, T], name: str, what: str, location: str) -> T:
    """`registry[name]`.

    Raises:
        UserError: if there is none, naming the nearest ones.
    """
    if isinstance(name, str) and name in registry:
        return registry[name]
    raise UserError(f"{location}: unknown {what} {name!r}{suggest(name, registry)}")


def suggest(name: str, options: Iterable[str]) -> str:
    """The end of an error message: the nearest known name, or all of them."""
    names = sorted(map(str, options))
    if not names:
        return "; there are none"
    near = difflib.get_close_matches(str(name), names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"


def _preview(value: Any) -> str:
    """A value as it stands in a file, its beginning if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _keys_of(error: ErrorDetails, content: Any) -> list[int | str]:
    """The path to a mistake, less what pydantic puts between the keys of the file."""
    keys: list[int | str] = []
    kind = False
    for key in error["loc"]:
        # Behind its kind a mapping may have a key of the same name.
        kind = not kind and isinstance(content, Mapping) and content.get("kind") == key
        if not kind:
            try:
                content = content[key]
            except (LookupError, TypeError):
                continue
            keys.append(key)
    if error["type"] == "unknown_key":
        return [*keys, error["ctx"]["key"]]
    return [*keys, error["loc"][-1]] if error["type"] == "missing" else keys
