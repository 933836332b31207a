"""What a stage is asked to write, checked before any work is done."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from epcore.errors import UserError
from epcore.files import meta_of
from epcore.stages import Stage


def check_outputs(stage: Stage, given: Mapping[str, Any]) -> None:
    """Raises `UserError` unless every `--out` is a new file or may be replaced.

    It has the right ending, is no folder or device and none of the inputs, is given once, and its
    meta file describes no other file that is there.

    Args:
        stage: the stage.
        given: its files by option, one or many.
    """
    (option,) = (each for each in stage.files if each.name == "out")
    inputs = [
        path for each in stage.files if each.name != "out" for path in paths_of(given, each.name)
    ]
    outs = paths_of(given, "out")
    for place, out in enumerate(outs):
        if option.ending is None:
            _check_folder(out)
            continue
        if out.is_dir():
            raise UserError(f"--out: {str(out) or '.'} is a folder; give the name of a file")
        if out.exists() and not out.is_file():
            raise UserError(f"--out: {out} is no regular file; give another name")
        if out.suffix != option.ending:
            raise UserError(f"--out: {out} must end in {option.ending}")
        if any(_same(out, other) for other in inputs):
            raise UserError(f"--out: {out} is an input of the same job; give another name")
        if any(_same(out, other) for other in outs[:place]):
            raise UserError(f"--out: {out} is there twice; give each its own name")
        if stage.writes_meta:
            _check_meta(out)


def paths_of(given: Mapping[str, Any], name: str) -> list[Path]:
    """The files of an option: one, several or none."""
    value = given.get(name)
    if value is None:
        return []
    return [value] if isinstance(value, Path) else [*value]


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"--out: {out} is a file; give the name of a folder")


def _check_meta(out: Path) -> None:
    """Two files share a meta file if they differ in their ending alone."""
    try:
        made: Iterable[str] = json.loads(meta_of(out).read_text(encoding="utf-8"))["made"]
    except (ValueError, KeyError, TypeError, OSError):
        return  # none, or one that its own files are refused with
    others = [name for name in made if out.with_name(name).exists()]
    if out.name not in made and others:
        raise UserError(
            f"--out: {out} would share {meta_of(out).name} with {others[0]}, which it describes; "
            "give a name that differs in more than its ending"
        )


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
