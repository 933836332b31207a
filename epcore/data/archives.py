"""Members of tar archives, read in place: nothing is ever extracted."""

import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from epcore.errors import UserError

DAMAGED = (tarfile.TarError, zlib.error, EOFError, OSError, OverflowError, UnicodeDecodeError)


@contextmanager
def open_tar(path: Path, content: IO[bytes] | None = None) -> Iterator[tarfile.TarFile]:
    """A tar archive, compressed or not; `content` if it lies inside another file.

    Raises:
        UserError: if it is damaged, from the block as well.
    """
    try:
        with tarfile.open(path, fileobj=content) as archive:
            yield archive
    except DAMAGED as error:
        raise UserError(f"{path} is no archive, or damaged ({error})", "get it again") from None


def files_of_tar(path: Path) -> Iterator[tuple[str, tarfile.TarFile, tarfile.TarInfo]]:
    """Name, archive and member of each plain file of a tar archive, in the archive's order."""
    with open_tar(path) as archive:
        for member in archive:
            if member.isfile():
                yield str(PurePosixPath(member.name)), archive, member


def read_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The content of a plain file.

    Raises:
        UserError: if it is damaged.
    """
    try:
        content = archive.extractfile(member)
        assert content is not None, f"{member.name} is no plain file"
        return content.read()
    except DAMAGED as error:
        raise UserError(
            f"{archive.name!s}: {member.name} is damaged ({error})", "get the archive again"
        ) from None
