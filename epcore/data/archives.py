"""Members of tar archives, read in place: nothing is ever extracted."""

import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from epcore.errors import UserError

DAMAGED = (tarfile.TarError, zlib.error, EOFError, OSError, OverflowError, UnicodeDecodeError)
Read = Callable[[], bytes]


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """Raises `UserError` if an archive turns out to be damaged in the block."""
    try:
        yield
    except DAMAGED as error:
        raise UserError(f"{path} is no archive, or damaged ({error})", "get it again") from None


def files_of_tar(path: Path, content: IO[bytes] | None = None) -> Iterator[tuple[str, Read]]:
    """Name of each plain file of a tar archive, in the archive's order, and what reads the file.

    Args:
        path: of the archive, compressed or not.
        content: an open file at whose position the archive begins; its files can be read as long
            as it is open, those of a path until the next one is asked for.

    Raises:
        UserError: if the archive is damaged, from the readers as well.
    """
    with damage_told(path), tarfile.open(path, fileobj=content) as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)):
                yield str(PurePosixPath(member.name)), partial(_read, path, file)


def _read(path: Path, file: IO[bytes]) -> bytes:
    with damage_told(path):
        return file.read()
