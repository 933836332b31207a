"""Reads the YAML files of `config/`, merges them and says plainly what is wrong with them."""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeGuard, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from epcore.errors import UserError

T = TypeVar("T")
MOST_VALUES, DEEPEST = 100_000, 50

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
                        problem="a key is no plain text; quote {{ and }}",
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
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
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
        _check_size(content, where)
    except (RecursionError, ValueError) as error:  # nested too deeply; a number of many digits
        raise UserError(f"{where}: this is not valid YAML: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise UserError(f"{where}{line}: this is not valid YAML: {problem}") from None
    if not isinstance(content, dict):
        raise UserError(f"{where}: expected a mapping of keys to values at the top level")
    return content


def _check_size(content: Any, where: str) -> None:
    """Aliases of aliases may stand for more than fits into memory, or hold themselves.

    Raises:
        UserError: if there are more values than a config ever has, each alias counted anew.
    """
    left, waiting = MOST_VALUES, [(content, 0)]
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        if left < 0 or depth > DEEPEST:
            raise UserError(
                f"{where}: more than {MOST_VALUES} values, or one within {DEEPEST} others; write "
                "out what its aliases stand for"
            )
        below = value.values() if isinstance(value, dict) else value
        if isinstance(value, (dict, list)):
            waiting += [(each, depth + 1) for each in below]


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


def validate(kind: type[T], content: Any, where: str) -> T:
    """`content` as the type `kind`.

    Raises:
        UserError: naming the first wrong key, its value and what is expected.
    """
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        keys = _without_kinds(first["loc"], content)
        place = ".".join(map(str, keys))
        if first["type"] == "extra_forbidden":
            known = _keys_at(kind, [key for key in keys[:-1] if isinstance(key, str)])
            problem = f"unknown key {place!r}{suggest(str(keys[-1]), known)}"
        elif first["type"] == "missing":
            problem = f"the key {place!r} is missing"
        else:
            told = EXPECTED.get(first["type"], first["msg"]).removeprefix("Value error, ")
            got = json.dumps(first["input"], ensure_ascii=False, default=str)
            problem = f"{place + ': ' if place else ''}{told}, got {got}"
        raise UserError(f"{where}: {problem}") from None


def _without_kinds(location: tuple[int | str, ...], content: Any) -> list[int | str]:
    """The path to a mistake, less the kinds that pydantic puts between the keys of the file."""
    keys = []
    for key in location:
        if isinstance(content, Mapping) and content.get("kind") == key:
            continue
        keys.append(key)
        try:
            content = content[key]
        except (LookupError, TypeError):
            content = None
    return keys


def check_keys(
    model: type[BaseModel], content: Any, where: str, at: str = "", also: tuple[str, ...] = ()
) -> None:
    """Partial settings of `model`: no key but its own and `also`; null deletes, see `merge`.

    Raises:
        UserError: naming the first wrong key, at any depth.
    """
    if not isinstance(content, Mapping):
        place = f"{at.rstrip('.')}: " if at else ""
        got = json.dumps(content, ensure_ascii=False, default=str)
        raise UserError(f"{where}: {place}{EXPECTED['model_type']}, got {got}")
    for key, value in content.items():
        if key in also:
            continue
        if key not in model.model_fields:
            known = suggest(key, [*model.model_fields, *also])
            raise UserError(f"{where}: unknown key {f'{at}{key}'!r}{known}")
        below = model.model_fields[key].annotation
        if _is_model(below) and value is not None:
            check_keys(below, value, where, f"{at}{key}.")


def _keys_at(kind: Any, keys: list[str]) -> list[str]:
    """The keys allowed at a place inside a model; the place does not count list entries."""
    if _is_model(kind):
        # As they stand in the file.
        fields = {field.alias or name: field for name, field in kind.model_fields.items()}
        if not keys:
            return list(fields)
        field = fields.get(keys[0])
        return _keys_at(field.annotation, keys[1:]) if field else []
    if get_origin(kind) is dict:
        return _keys_at(get_args(kind)[1], keys[1:])
    return [key for argument in get_args(kind) for key in _keys_at(argument, keys)]


def _is_model(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
