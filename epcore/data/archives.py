"""Members of tar archives, read in place: nothing is ever extracted.

Most archives have a published checksum, which `epcore fetch` has compared. A tar of one class of
ILSVRC2012, unpacked by the user, has none: it may be damaged.
"""

import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from epcore.errors import UserError

LARGEST = 1 << 28  # bytes of a picture's file
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
        raise UserError(f"{path} is no archive, or damaged ({error}); get it again") from None


def files_of_tar(path: Path) -> Iterator[tuple[str, tarfile.TarFile, tarfile.TarInfo]]:
    """The plain files of a tar archive, in the archive's order."""
    with open_tar(path) as archive:
        for member in archive:
            if member.isfile():
                yield str(PurePosixPath(member.name)), archive, member


def read_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The content of a plain file.

    Raises:
        UserError: if it is damaged, or would fill the memory.
    """
    if member.size > LARGEST:
        raise UserError(
            f"{archive.name!s}: {member.name} has {member.size:,} bytes, {LARGEST:,} are the most "
            "that a member has; get the archive again"
        )
    try:
        content = archive.extractfile(member)
        if content is None:
            raise UserError(f"{member.name} is no plain file")
        return content.read()
    except DAMAGED as error:
        raise UserError(
            f"{archive.name!s}: {member.name} is damaged ({error}); get the archive again"
        ) from None
