"""Files: never half-written, and what is known of how they came to be."""

import contextlib
import csv
import hashlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from epcore.errors import UserError

# What the running job has used up to now, where its energy is tracked; see epcore.footprint.
ENERGY: ContextVar[Callable[[], dict[str, Any]] | None] = ContextVar("ENERGY", default=None)


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yields a temporary name beside `path`; renames it to `path` when the block succeeds.

    Raises:
        UserError: if `path` is a folder, a device or the like.
    """
    if not path.name or (path.exists() and not path.is_file()):
        raise UserError(f"{path} is no regular file", "give another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    # The ending stays, because numpy and matplotlib choose or append by it.
    temporary = path.with_name(f".{path.stem}.{uuid.uuid4().hex[:12]}.tmp{path.suffix}")
    try:
        with named_in_os_error(path):
            yield temporary
            publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def publish(temporary: Path, path: Path) -> None:
    """Gives a finished file its name.

    Its content is on the disk before, and its name afterwards, so that a machine that fails leaves
    the old file or the new one.
    """
    _flush(temporary)
    temporary.replace(path)
    with contextlib.suppress(OSError):  # some file systems cannot flush a folder
        _flush(path.parent)


@contextlib.contextmanager
def named_in_os_error(path: Path) -> Iterator[None]:
    """An `OSError` of the block that names no file names this one.

    Writing to an open file, a full disk does not say of itself which one.
    """
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextlib.contextmanager
def user_error_on_failure(problem: str, remedy: str) -> Iterator[None]:
    """What goes wrong in the block with a file that a job wrote is told as `problem` and `remedy`.

    Raises:
        UserError: if the file is missing or damaged.
    """
    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, AttributeError, csv.Error) as error:
        raise UserError(
            f"{problem} ({error})", f"{remedy} and run the same command again"
        ) from None


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reserve(path: Path) -> None:
    """Claims the room of a file with holes now, where writing to its memory map could not say no.

    Raises:
        OSError: if the disk has not that much left.
    """
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def write_text(path: Path, text: str) -> None:
    """Writes a UTF-8 file whole or not at all."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def sha256(path: Path) -> str:
    """Hexadecimal digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(*parts: str) -> str:
    """Sixteen hexadecimal digits that change when any of the texts does."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def check_exists(path: Path, what: str, remedy: str | None = None) -> None:
    """Raises `UserError` unless `path` is a file; one of the results says what makes it."""
    if path.is_file():
        return
    if remedy is None:
        remedy = "make it first, or correct the name"
        if len(path.parts) > 2 and path.parts[0] == "results":
            remedy = f"make it first: snakemake --cores all {path} --config scale={path.parts[1]}"
    raise UserError(f"{what} {path} does not exist", remedy)


def curve_of(checkpoint: Path, model: str = "") -> Path:
    """The training curve that stands beside a checkpoint, one for each `model` in it."""
    return checkpoint.with_name(f"{checkpoint.stem}{model}.csv")


def meta_of(file: Path) -> Path:
    """The `meta.json` that stands beside an artifact."""
    return file.with_suffix(".meta.json")


@contextlib.contextmanager
def read_meta(
    meta: Path, remedy: str = "delete it and the file beside it"
) -> Iterator[dict[str, Any]]:
    """The content of a `meta.json`, for a block that takes facts out of it.

    Raises:
        UserError: if the file is missing or damaged, or if the block finds a fact missing or of a
            wrong type; it names the file and ends with the remedy.
    """
    with user_error_on_failure(f"{meta} is damaged", remedy):
        yield json.loads(meta.read_text(encoding="utf-8"))


def verified(path: Path) -> str:
    """The sha256 of a file, which is that of its `meta.json` if that names it.

    Raises:
        UserError: if it is another one: the file was damaged, or replaced by a foreign one.
    """
    digest, meta = sha256(path), meta_of(path)
    if meta.is_file() and path != meta:
        with read_meta(meta, f"delete it and {path}") as facts:
            expected = facts["made"].get(path.name, digest)
        if digest != expected:
            raise UserError(
                f"{path} is damaged or foreign: it is not the file that {meta.name} describes",
                "delete it and run the same command again to make it anew",
            )
    return digest


def _git_revision() -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


class Provenance:
    """Measures one run of a stage and writes the `meta.json` of what it made.

    The file holds: stage, its version and resolved config, sha256 of every input and of what was
    made, package versions, git revision of the code, device, seconds, energy where it is tracked,
    and what the stage adds.

    Raises:
        UserError: if an input is missing, or is not the file that its own `meta.json` describes.
    """

    def __init__(
        self, stage: str, config: BaseModel | Mapping[str, Any], inputs: list[Path]
    ) -> None:
        for path in inputs:
            check_exists(path, "input")
        plain = config.model_dump(mode="json") if isinstance(config, BaseModel) else config
        self.stage, self.config = stage, plain
        self.inputs = {path.as_posix(): verified(path) for path in inputs}
        self.started = time.time()

    @property
    def fingerprint(self) -> str:
        """Changes with the config and the content of every input."""
        return fingerprint(canonical_json(self.config), *self.inputs.values())

    def write(self, *files: Path, **facts: Any) -> None:
        """Writes the meta file beside the first of the files that were made, which are finished."""
        packages = ("epcore", "torch", "numpy", "pillow", "matplotlib")
        document = {
            "stage": self.stage,
            "config": self.config,
            "inputs": self.inputs,
            "made": {path.name: sha256(path) for path in files},
            "git_revision": _git_revision(),
            "python": sys.version.split()[0],
            "packages": {name: version_of(name) for name in packages},
            "threads": os.environ.get("OMP_NUM_THREADS"),
            "seconds": round(time.time() - self.started, 3),
            **facts,
        }
        if (energy := ENERGY.get()) is not None:
            document["energy"] = energy()
        write_text(meta_of(files[0]), json.dumps(document, indent=1, sort_keys=True) + "\n")


def add_energy(made: Path) -> None:
    """Adds this job's energy to the meta of a file that other processes of it have made."""
    if (energy := ENERGY.get()) is not None:
        meta = meta_of(made)
        document = json.loads(meta.read_text(encoding="utf-8")) | {"energy": energy()}
        write_text(meta, json.dumps(document, indent=1, sort_keys=True) + "\n")


def version_of(package: str) -> str | None:
    """The version of a package, if it is installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
