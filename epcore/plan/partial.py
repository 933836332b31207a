"""Settings of which any part may be left out: what one file or key lays over another."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, Field, GetCoreSchemaHandler, create_model
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from epcore.plan.settings import Settings

# Key -> its type and what it is.
Keys = dict[str, tuple[Any, str]]

EXTENDS: Keys = {"extends": (str, "the entry that this one starts from")}


@dataclass(frozen=True)
class PartOf:
    """`Annotated[dict[str, Any], PartOf(model)]` is a mapping that is checked and kept as it is.

    It has keys of `model` and of `more`, and so at any depth; null deletes a key, see
    `epcore.plan.load.merge`. What keys must be to each other is checked of the whole, once merged.
    Schemas call it `name`, or as the model.
    """

    model: type[BaseModel]
    more: Keys = field(default_factory=dict, hash=False)
    name: str = ""

    @cached_property
    def kind(self) -> type[Settings]:
        """The settings that it is checked as."""
        return optional(self.model, self.more, self.name) if self.more else partial(self.model)

    def __get_pydantic_core_schema__(
        self, _source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            _kept,
            handler.generate_schema(self.kind),
            serialization=core_schema.plain_serializer_function_ser_schema(dict),
        )


def _kept(value: Any, check: Callable[[Any], Any]) -> Any:
    check(value)
    return value


def optional(model: type[BaseModel], more: Keys, name: str = "") -> type[Settings]:
    """Settings with the keys of a model and more, which may be null or not there, at any depth."""
    text = model.__doc__ or ""
    keys = {
        key: (type_of(info), info.description or text) for key, info in model.model_fields.items()
    }
    # A factory, because null is not what a key is by default.
    fields: dict[str, Any] = {
        key: (_partial(kind) | None, Field(default_factory=lambda: None, description=said))
        for key, (kind, said) in {**keys, **more}.items()
    }
    return create_model(name or model.__name__, __base__=Settings, __doc__=text, **fields)


@cache
def partial(model: type[BaseModel]) -> type[Settings]:
    """As `optional`, with the keys of the model alone."""
    return optional(model, {})


def type_of(info: FieldInfo) -> Any:
    """The type of a field, with its bounds."""
    return Annotated[info.annotation, *info.metadata, None]


def _partial(kind: Any) -> Any:
    """A type, with parts of models where it has models."""
    origin, below = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return partial(kind)
    if origin is dict:
        entry = below[1] if below[1] is Any else _partial(below[1]) | None
        return GenericAlias(dict, (below[0], entry))
    if origin in (Union, UnionType):
        return Union[tuple(map(_partial, below))]  # noqa: UP007
    if origin is Annotated:
        # A part need not say of which kind it is, nor be what a whole value must be.
        bounds = [each for each in below[1:] if not getattr(each, "discriminator", None)]
        bounds = [each for each in bounds if not isinstance(each, AfterValidator)]
        return Annotated[_partial(below[0]), *bounds, None]
    return kind
