"""What a stage or command is asked to write, checked before any work is done."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from epcore.errors import UserError
from epcore.files import meta_of
from epcore.stages import STAGES

# Commands that are no stages: option of a file that is written -> endings of it and of those beside
# it; and options of files that are read.
COMMAND_OUTPUTS: dict[str, dict[str, tuple[str, ...]]] = {
    "fetch": {"receipt": (".json",)},
    "co2": {"out": (".csv", ".md", ".meta.json"), "tex": (".tex",), "drawing": (".pdf", ".png")},
    "classify": {"episodes": (".npz",)},
    "import-weights": {"out": (".pt",)},
    "embed-folder": {"out": (".npz",)},
}
COMMAND_INPUTS = ("ledger", "features", "weights")


def check_outputs(name: str, given: Mapping[str, Any], by_hand: bool) -> None:
    """Raises `UserError` unless every `--out` of a stage is a new file or may be replaced.

    It has the right ending and a folder to stand in. Neither it nor a file that is written beside
    it is a folder, a device, one of the inputs or there twice, and its meta file describes no other
    file that is there.

    Args:
        name: the stage.
        given: its files by option, one or many.
        by_hand: whether a person named them; the folders of a job by its names are made.
    """
    stage = STAGES[name]
    inputs = [path for each in stage.files[:-1] for path in paths_of(given, each.name)]
    written: list[Path] = []
    for out in paths_of(given, "out"):
        if by_hand or out.parent.exists():
            _check_parent(out, "--out")
        else:
            out.parent.mkdir(parents=True)
        if stage.out.endings:
            written += _check_file(out, "--out", stage.out.endings, inputs, written)
            if stage.writes_meta:
                _check_meta(name, out)
        else:
            _check_folder(out, inputs)


def check_command(name: str, given: Mapping[str, Any]) -> None:
    """As `check_outputs`, for a command that is no stage."""
    inputs = [path for each in COMMAND_INPUTS for path in paths_of(given, each)]
    written: list[Path] = []
    for option, endings in COMMAND_OUTPUTS[name].items():
        for out in paths_of(given, option):
            _check_parent(out, f"--{option}")
            written += _check_file(out, f"--{option}", endings, inputs, written)


def paths_of(given: Mapping[str, Any], name: str) -> list[Path]:
    """The files of an option: one, several or none."""
    value = given.get(name)
    if value is None:
        return []
    return [value] if isinstance(value, Path) else [*value]


def _check_parent(out: Path, option: str) -> None:
    folder = out.parent
    if not folder.is_dir():
        raise UserError(
            f"{option}: {out}: there is no folder {folder}; make it, or correct the name"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{option}: {out}: you may not write into {folder}; choose another folder")


def _check_file(
    out: Path, option: str, endings: tuple[str, ...], inputs: Iterable[Path], before: Iterable[Path]
) -> list[Path]:
    """The file and those beside it."""
    if out.is_dir():
        raise UserError(f"{option}: {out} is a folder; give the name of a file")
    if out.suffix != endings[0]:
        raise UserError(f"{option}: {out} must end in {endings[0]}")
    files = [out.with_name(f"{out.stem}{ending}") for ending in endings]
    for file in files:
        beside = "" if file == out else f", which goes beside {out},"
        if file.exists() and not file.is_file():
            raise UserError(f"{option}: {file}{beside} is no regular file; give another name")
        if any(_same(file, other) for other in inputs):
            raise UserError(
                f"{option}: {file}{beside} is an input of the same job; give another name"
            )
        if any(_same(file, other) for other in before):
            raise UserError(f"{option}: {file}{beside} is there twice; give each its own name")
    return files


def _check_folder(out: Path, inputs: Iterable[Path]) -> None:
    if not out.name:
        raise UserError(f"--out: {out} has no name; give that of a folder")
    if out.exists() and not out.is_dir():
        raise UserError(f"--out: {out} is a file; give the name of a folder")
    if any(_same(out, other) for other in inputs):
        raise UserError(f"--out: {out} is an input of the same job; give another name")


def _check_meta(name: str, out: Path) -> None:
    """Two files share a meta file if they differ in their ending alone."""
    try:
        facts = json.loads(meta_of(out).read_text(encoding="utf-8"))
        made, stage = list(facts["made"]), facts["stage"]
    except (ValueError, KeyError, TypeError, OSError):
        return  # none, or one that its own files are refused with
    others = [each for each in made if each != out.name and out.with_name(each).exists()]
    if others and (out.name not in made or stage != name):
        raise UserError(
            f"--out: {out} would share {meta_of(out).name} with {others[0]}, which it describes; "
            "give a name that differs in more than its ending"
        )


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
