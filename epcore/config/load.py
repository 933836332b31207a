"""Reads the YAML files of `config/` and merges them."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from epcore.errors import UserError
from epcore.settings import T, pick, validate

DEFAULTS = Path(__file__).parents[1] / "defaults"  # config/, which a wheel has too


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Plain values only, in libyaml's speed where there is libyaml; no key twice in a mapping."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._flat: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuses duplicate keys; PyYAML calls it before and after it merges `<<` keys."""
        if id(node) not in self._flat:
            self._flat.add(id(node))
            keys: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.constructor.ConstructorError(
                        problem="a key is a text (braces of your own need quotes)",
                        problem_mark=key.start_mark,
                    )
                if key.value in keys:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key {key.value!r} is there twice", problem_mark=key.start_mark
                    )
                keys.add(key.value)
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
        raise UserError(f"{path}: this is not UTF-8 text", "save it as UTF-8") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, location: str) -> dict[str, Any]:
    """The mapping in a YAML text.

    Raises:
        UserError: if it is no YAML or no mapping; it begins with `location`.
    """
    try:
        content = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # no such day; circles
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or " ".join(
            f"it cannot be parsed ({error})".split()
        )
        raise UserError(f"{location}{line}: this is not valid YAML: {problem}") from None
    if not isinstance(content, dict):
        raise UserError(f"{location}: expected a mapping of keys to values at the top level")
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


def laid_over(layers: Iterable[Mapping[str, Any]], key: str, name: str) -> dict[str, Any]:
    """Layers merged, the last on top; what a layer has below `<key>.<name>` goes over its rest."""
    merged: dict[str, Any] = {}
    for layer in layers:
        general = {other: value for other, value in layer.items() if other != key}
        merged = merge(merge(merged, general), (layer.get(key) or {}).get(name) or {})
    return merged


def extend(
    registry: Mapping[str, T],
    name: str,
    what: str,
    location: str,
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
            raise UserError(f"{location}: {what} {name!r} extends itself: {circle}")
        place = f"{location}, extends of {chain[-1]}" if chain else location
        chain.append(current)
        entries.append(dict(read(pick(registry, current, what, place))))
        current = entries[-1].pop("extends", None)
    merged: dict[str, Any] = {}
    for entry in reversed(entries):
        merged = merge(merged, entry)
    return merged


def read(config: Path, name: str, kind: type[T]) -> T:
    """A file of the config folder, as the type `kind`.

    Raises:
        UserError: as `read_yaml` and `validate`.
    """
    return validate(kind, read_yaml(config / name), f"{config.name}/{name}")
