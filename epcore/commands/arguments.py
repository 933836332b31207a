"""Types of command-line arguments."""

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from epcore.errors import UserError


def number(least: int) -> Callable[[str], int]:
    """The type of a number of things, of which there are `least` or more."""

    def check(text: str) -> int:
        with contextlib.suppress(ValueError):
            if int(text) >= least:
                return int(text)
        raise argparse.ArgumentTypeError(f"expected a whole number, {least} or more, got {text}")

    return check


def setting(text: str) -> tuple[str, Any]:
    """A key of config.yaml and its value, as Snakemake's `--config` has them: `seeds=3`."""
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text}; name targets before it")
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError:
        raise argparse.ArgumentTypeError(f"{text}: the value is not valid YAML") from None


def output_file(ending: str) -> Callable[[str], Path]:
    """The type of a file that a command writes; its name is checked before any work is done.

    Raises:
        UserError: if it has another ending, is a folder or has no folder to stand in.
    """

    def check(text: str) -> Path:
        path = Path(text)
        if path.suffix != ending:
            raise UserError(f"{path} must end in {ending}")
        if path.is_dir():
            raise UserError(f"{path} is a folder", "give the name of a file")
        if not path.parent.is_dir():
            raise UserError(
                f"{path}: there is no folder {path.parent}", "make it, or correct the name"
            )
        return path

    return check
