"""Reads the YAML files of `config/`, merges them and says plainly what is wrong with them."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from epcore.errors import UserError

T = TypeVar("T")


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        UserError: if it cannot be read, is no YAML or no mapping.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise UserError(f"{path}{where}: this is not valid YAML: {problem}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a mapping of keys to values at the top level")
    return content


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` laid on it, mappings merged key by key; a null in `over` deletes."""
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def pick(registry: Mapping[str, T], name: str, what: str, where: str) -> T:
    """`registry[name]`.

    Raises:
        UserError: if there is none, naming the nearest ones.
    """
    if name in registry:
        return registry[name]
    raise UserError(f"{where}: unknown {what} {name!r}{suggest(name, registry)}")


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known name, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"


def extend(
    registry: Mapping[str, dict[str, Any]], name: str, what: str, where: str
) -> dict[str, Any]:
    """An entry with its `extends` chain merged, the nearest last.

    Raises:
        UserError: for an unknown name or a circle.
    """
    chain: list[str] = []
    current: str | None = name
    while current is not None:
        if current in chain:
            raise UserError(f"{where}: {what} {name!r} extends itself: {' -> '.join(chain)}")
        chain.append(current)
        current = pick(registry, current, what, where).get("extends")
    merged: dict[str, Any] = {}
    for ancestor in reversed(chain):
        entry = dict(registry[ancestor])
        entry.pop("extends", None)
        merged = merge(merged, entry)
    return merged


def validate(kind: type[T], content: Any, where: str) -> T:
    """`content` as the type `kind`.

    Raises:
        UserError: naming the first wrong key, its value and what is expected.
    """
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        keys = [str(key) for key in first["loc"] if key not in ("glyphs", "folder")]
        place = ".".join(keys)
        if first["type"] == "extra_forbidden":
            known = _keys_at(kind, keys[:-1])
            problem = f"unknown key {place!r}{suggest(keys[-1], known)}"
        elif first["type"] == "missing":
            problem = f"the key {place!r} is missing"
        else:
            problem = f"{place}: {first['msg']}, got {first['input']!r}"
        raise UserError(f"{where}: {problem}") from None


def check_keys(
    model: type[BaseModel], content: Mapping[str, Any], where: str, at: str = ""
) -> None:
    """Raises `UserError` for a key of partial settings that `model` does not have."""
    for key, value in content.items():
        if key not in model.model_fields:
            known = suggest(key, model.model_fields)
            raise UserError(f"{where}: unknown key {at + key!r}{known}")
        below = model.model_fields[key].annotation
        if isinstance(value, Mapping) and isinstance(below, type) and issubclass(below, BaseModel):
            check_keys(below, value, where, f"{at}{key}.")


def _keys_at(kind: Any, keys: list[str]) -> list[str]:
    """The keys allowed at a place inside a model, as far as types tell."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if not keys:
            return list(kind.model_fields)
        field = kind.model_fields.get(keys[0])
        return _keys_at(field.annotation, keys[1:]) if field else []
    inner = get_args(kind)
    if keys and inner and not any(_is_model(argument) for argument in inner[:1]):
        return _keys_at(inner[-1], keys[1:])
    return [key for argument in inner for key in _keys_at(argument, keys)]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
