"""Members of tar and zip archives, read in place: nothing is ever extracted."""

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from epcore.errors import UserError

# Bytes of a member: the largest that is read at once, a part of CIFAR-100, has 155 million.
LARGEST = 1 << 28
DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    UnicodeDecodeError,
)


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
    """The plain files of a tar archive, in the archive's order; see `check_member`."""
    with open_tar(path) as archive:
        for member in archive:
            check_member(path, member.name, member.size)
            if not (member.isfile() or member.isdir()):
                raise UserError(f"{path}: {member.name} is no plain file", "the archive is refused")
            if member.isfile():
                yield str(PurePosixPath(member.name)), archive, member
        while archive.fileobj is not None and archive.fileobj.read(1 << 20):
            pass  # to its end, where gzip compares its checksum


def read_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """The content of a plain file.

    Raises:
        UserError: if it is damaged, or too large.
    """
    check_member(Path(str(archive.name)), member.name, member.size)
    try:
        content = archive.extractfile(member)
        if content is None:
            raise UserError(f"{member.name} is no plain file")
        return content.read()
    except DAMAGED as error:
        raise UserError(
            f"{archive.name!s}: {member.name} is damaged ({error})", "get the archive again"
        ) from None


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """A zip archive; see `check_member`.

    Raises:
        UserError: if it is damaged, from the block as well.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                check_member(path, member.filename, member.file_size)
            yield archive
    except DAMAGED as error:
        raise UserError(f"{path} is no archive, or damaged ({error})", "get it again") from None


def check_member(archive: Path, name: str, size: int) -> None:
    """Refuses a member that points out of its archive, or is larger than any published one.

    Raises:
        UserError: for an absolute path, one with '..', or a member that would fill the memory.
    """
    if size > LARGEST:
        raise UserError(
            f"{archive}: {name} has {size:,} bytes, {LARGEST:,} are the most that a member has",
            "get the archive again",
        )
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise UserError(f"{archive}: the member {name!r} leaves the archive", "it is refused")
