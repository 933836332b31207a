"""Reads the YAML files of `config/`, merges them and says plainly what is wrong with them."""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from epcore.errors import UserError
from epcore.plan.partial import PartOf, type_of

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


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Plain values only, in libyaml's speed where there is libyaml; no key twice in a mapping."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._flat: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Called first with the keys that are written; later with those merged from others too."""
        if id(node) not in self._flat:
            self._flat.add(id(node))
            written: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.constructor.ConstructorError(
                        problem="a key is a text (braces of your own need quotes)",
                        problem_mark=key.start_mark,
                    )
                if key.value in written:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key {key.value!r} is there twice", problem_mark=key.start_mark
                    )
                written.add(key.value)
        super().flatten_mapping(node)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        UserError: if it cannot be read, is no YAML or no mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        advice = "; run this where the Snakefile is, or say --settings FOLDER"
        elsewhere = "" if path.parent.is_dir() else advice
        raise UserError(f"{path}: cannot be read ({error.strerror}){elsewhere}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: this is not UTF-8 text; save it as UTF-8") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, where: str) -> dict[str, Any]:
    """The mapping in a YAML text.

    Raises:
        UserError: if it is no YAML or no mapping; it begins with `where`.
    """
    try:
        content = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # no such day; circles
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or " ".join(
            f"it cannot be parsed ({error})".split()
        )
        raise UserError(f"{where}{line}: this is not valid YAML: {problem}") from None
    if not isinstance(content, dict):
        raise UserError(f"{where}: expected a mapping of keys to values at the top level")
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
    if isinstance(name, str) and name in registry:
        return registry[name]
    raise UserError(f"{where}: unknown {what} {name!r}{suggest(name, registry)}")


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the nearest known name, or all of them."""
    names = sorted(map(str, known))
    if not names:
        return "; there are none"
    near = difflib.get_close_matches(str(name), names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"


def extend(
    registry: Mapping[str, T],
    name: str,
    what: str,
    where: str,
    read: Callable[[T], dict[str, Any]],
) -> dict[str, Any]:
    """An entry with its `extends` chain merged, the nearest last; `read` opens an entry.

    Raises:
        UserError: for an unknown name or a circle.
    """
    chain: list[str] = []
    entries: list[dict[str, Any]] = []
    current: str | None = name
    while current is not None:
        if current in chain:
            circle = " -> ".join([*chain, current])
            raise UserError(f"{where}: {what} {name!r} extends itself: {circle}")
        place = f"{where}, extends of {chain[-1]}" if chain else where
        chain.append(current)
        entries.append(dict(read(pick(registry, current, what, place))))
        current = entries[-1].pop("extends", None)
    merged: dict[str, Any] = {}
    for entry in reversed(entries):
        merged = merge(merged, entry)
    return merged


def validate(kind: type[T], content: Any, where: str, advice: str = "") -> T:
    """`content` as the type `kind`.

    Raises:
        UserError: naming the first wrong key, its value and what is expected; it ends with
            `advice` where a key is missing.
    """
    try:
        checked: T = _adapter(kind).validate_python(content)
        return checked
    except ValidationError as error:
        # Of a misspelled key, before the one that is missing for it.
        found = error.errors()
        unknown = [each for each in found if each["type"] == "extra_forbidden"]
        first = unknown[0] if unknown and found[0]["type"] == "missing" else found[0]
        # Of what may be one thing or another, the reading in which the mistake is deepest.
        at = _keys_of(first, content)
        first = max(
            (each for each in found if _keys_of(each, content)[: len(at)] == at),
            key=lambda each: (len(_keys_of(each, content)), each in unknown, each is first),
        )
        keys = _keys_of(first, content)
        place = ".".join(map(str, keys))
        if first["type"] == "extra_forbidden":
            known = set(_keys_at(kind, keys[:-1], content))
            problem = f"unknown key {place!r}{suggest(str(keys[-1]), known)}"
        elif first["type"] == "union_tag_invalid":
            kinds = re.findall("'(.*?)'", first["ctx"]["expected_tags"])
            problem = f"{place}: unknown kind {(tag := first['ctx']['tag'])!r}{suggest(tag, kinds)}"
        elif first["type"] == "missing":
            problem = f"the key {place!r} is missing{advice}"
        else:
            told = EXPECTED.get(first["type"], first["msg"]).removeprefix("Value error, ")
            got = _shown(first["input"])
            problem = f"{place + ': ' if place else ''}{told}, got {got}"
        raise UserError(f"{where}: {problem}") from None


def read(config: Path, name: str, kind: type[T]) -> T:
    """A file of the config folder, as the type `kind`.

    Raises:
        UserError: as `read_yaml` and `validate`.
    """
    return validate(kind, read_yaml(config / name), f"{config.name}/{name}")


def _shown(value: Any) -> str:
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
    return [*keys, error["loc"][-1]] if error["type"] == "missing" else keys


def _keys_at(kind: Any, keys: list[int | str], content: Any) -> list[str]:
    """The keys allowed at a place inside a type; of a union, by the `kind` that the content has."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        # As they stand in the file.
        fields = {field.alias or name: field for name, field in kind.model_fields.items()}
        own = fields.get("kind")
        if own and get_origin(own.annotation) is Literal and isinstance(content, Mapping):
            kinds = get_args(own.annotation)
            if content.get("kind", kinds[0]) not in kinds:
                return []
        if not keys:
            return list(fields)
        field = fields.get(str(keys[0]))
        return _keys_at(type_of(field), keys[1:], content[keys[0]]) if field else []
    if isinstance(kind, PartOf):
        return _keys_at(kind.kind, keys, content)
    if keys and get_origin(kind) is dict:
        return _keys_at(get_args(kind)[1], keys[1:], content[keys[0]])
    if keys and get_origin(kind) is tuple:
        keys, content = keys[1:], content[keys[0]]
    return [key for argument in get_args(kind) for key in _keys_at(argument, keys, content)]
