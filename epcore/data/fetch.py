"""Files of sources, found on this machine or downloaded, and verified.

A file counts wherever it lies: below the data root or below the folder that the environment
variable EPCORE_MIRROR names. What is found is verified like a download, and never changed.
"""

import functools
import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import pooch
import requests
from filelock import FileLock, Timeout
from requests.adapters import HTTPAdapter
from tqdm import tqdm

from epcore.data.datasets import Source, SourceFile
from epcore.data.sources import stamp
from epcore.errors import UserError
from epcore.files import named_in_os_error

PIECE = 1 << 16  # what a connection that breaks off loses at most
ATTEMPTS = 3  # at each address
TIMEOUT = (20, 60)  # seconds to connect, and between two pieces
pooch.get_logger().setLevel("ERROR")  # what it tells, `obtain` and the progress bar tell too
BROKEN_OFF = (
    requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError
)  # fmt: skip


def places(root: Path) -> list[Path]:
    """The folders that a source's file may lie in."""
    mirror = os.environ.get("EPCORE_MIRROR")
    if mirror and not Path(mirror).is_dir():
        raise UserError(f"EPCORE_MIRROR names {mirror}, which is no folder", "correct or unset it")
    return [root, Path(mirror)] if mirror else [root]


def find(file: SourceFile, root: Path) -> Path | None:
    """The file, or the unpacked folder in its place, if it is on this machine."""
    for place in places(root):
        if (place / file.path).is_file():
            return place / file.path
        if file.unpacked and (place / file.unpacked).is_dir():
            return place / file.unpacked
    return None


def obtain(file: SourceFile, source: Source, name: str, root: Path) -> dict[str, Any]:
    """Finds or downloads a file, verifies it and returns its entry of the receipt."""
    path = find(file, root)
    if path is not None and path.is_dir():
        print(f"  {path}: an unpacked folder; the builder checks its content")
        return {"path": path.as_posix()}
    if path is None:
        if not file.urls:
            raise UserError(_by_hand(file, source, name, root))
        path = root / file.path
        download(file, path)
    else:
        _verify(path, file)
    if published := _checksum(file):
        digest = dict([published.split(":")])
        print(f"  {path}: verified")
    else:
        computed = pooch.file_hash(str(path))
        digest = {"sha256": computed, "checksum": "computed here: none is published"}
        print(f"  {path}: sha256 {computed}; none is published, the builder checks the content")
    return {"path": path.as_posix(), **stamp(path), **digest}


def _by_hand(file: SourceFile, source: Source, name: str, root: Path) -> str:
    steps = " ".join(f"({number}) {step}" for number, step in enumerate(source.by_hand, 1))
    folder = f", or the folder {root / file.unpacked}" if file.unpacked else ""
    return (
        f"{name}: not on this machine, and to be got by hand ({source.title}). {steps} Expected: "
        f"the file {root / file.path}{folder}; or the same below the folder of EPCORE_MIRROR"
    )


# -- verifying ------------------------------------------------------------------------------------


def _checksum(file: SourceFile) -> str | None:
    """The published checksum of a file as pooch writes it: `sha256:...` or `md5:...`."""
    if file.sha256:
        return f"sha256:{file.sha256}"
    return f"md5:{file.md5}" if file.md5 else None


def _verify(path: Path, file: SourceFile) -> None:
    """Raises `UserError` unless a file is the published one; without a checksum its size tells."""
    wrong = _wrong_size(path.stat().st_size, file)
    if wrong is None and (published := _checksum(file)):
        kind, expected = published.split(":")
        if (digest := pooch.file_hash(str(path), alg=kind)) != expected:
            wrong = f"its {kind} is {digest}, {expected} is expected"
    if wrong:
        raise UserError(
            f"{path} is not the published file: {wrong}",
            "replace it, or move it away to have it downloaded",
        )


def _wrong_size(size: int, file: SourceFile) -> str | None:
    if file.size is None or size == file.size:
        return None
    return f"it has {size:,} bytes, {file.size:,} are expected"


# -- downloading ----------------------------------------------------------------------------------


class _OfThisMachine(HTTPAdapter):
    """Plain http, which anybody on the way may change, reaches this machine and no other."""

    def send(self, request: Any, *arguments: Any, **settings: Any) -> Any:
        if urlsplit(request.url).hostname not in ("127.0.0.1", "localhost"):
            raise requests.exceptions.InvalidSchema(f"{request.url} is not https")
        return super().send(request, *arguments, **settings)


def download(file: SourceFile, path: Path) -> None:
    """Downloads to `path` from the first address that gives the published file.

    A file with a checksum goes on where its download stopped, the next time as well; `path`
    appears when the content is verified, not before. One process downloads it at a time; to the
    others it is then a file that was found.

    Raises:
        UserError: if no address gives it; the message has each one's reason.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with named_in_os_error(path), _turn(path):
        if path.is_file():
            _verify(path, file)
        else:
            _from_addresses(file, path, path.with_name(f".{path.name}.part"))


def _turn(path: Path) -> AbstractContextManager[Any]:
    """Waits until no other process downloads a file; says so if it must."""
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        return lock.acquire(blocking=False)
    except Timeout:
        print(f"epcore: waiting for another process that downloads {path}", file=sys.stderr)
        return lock.acquire()


def _from_addresses(file: SourceFile, path: Path, partial: Path) -> None:
    """Tries each address in turn, and again where one broke off or an old part was wrong."""
    downloader = functools.partial(_receive, file=file, partial=partial)
    urls, reasons = list(file.urls) * ATTEMPTS, {}
    while urls:
        url = urls.pop(0)
        if not _checksum(file):
            partial.unlink(missing_ok=True)  # nothing would tell that the file changed meanwhile
        resumed = partial.exists()
        try:
            pooch.retrieve(url, _checksum(file), path.name, path.parent, downloader=downloader)
            return
        except (requests.RequestException, ValueError) as error:
            reasons[url] = _reason(error)
            print(f"  {url}: {reasons[url]}", flush=True)
            if wrong_content := not isinstance(error, requests.RequestException):
                partial.unlink(missing_ok=True)
            # Of a resumed file the wrong bytes may be those that were there.
            if not (isinstance(error, BROKEN_OFF) or (wrong_content and resumed)):
                urls = [address for address in urls if address != url]
    raise UserError(
        f"{path.name} could not be downloaded ({'; '.join(map(': '.join, reasons.items()))})",
        f"try again later, or put the file there yourself: {path}",
    )


def _reason(error: Exception) -> str:
    """The cause of a failed download in one line; requests has a chain of them."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code}"
    if isinstance(error, BROKEN_OFF):
        return "no connection, or it broke off"
    return " ".join(str(error).split())


def _receive(url: str, output: str, _: Any, file: SourceFile, partial: Path) -> None:
    """Appends to the partial file what it lacks, and gives it to pooch, which verifies it.

    Raises:
        requests.RequestException: if the connection fails or breaks off.
        ValueError: if the content is longer or shorter than the published file.
    """
    have = partial.stat().st_size if partial.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.Session() as session:
        session.mount("http://", _OfThisMachine())
        with session.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if answer.status_code != requests.codes.requested_range_not_satisfiable:
                answer.raise_for_status()
                resumed = have > 0 and answer.status_code == requests.codes.partial_content
                with partial.open("ab" if resumed else "wb") as content:
                    _write(answer, content, file)
    if wrong := _wrong_size(partial.stat().st_size, file):
        raise ValueError(f"it sends another file: {wrong}")
    partial.replace(output)  # which pooch removes if its checksum is wrong


def _write(answer: requests.Response, content: BinaryIO, file: SourceFile) -> None:
    """Writes what arrives, which may be no longer than the published file."""
    with tqdm(
        total=file.size, initial=content.tell(), desc=Path(file.path).name, unit="B",
        unit_scale=True, disable=None,
    ) as progress:  # fmt: skip
        for piece in answer.iter_content(PIECE):
            content.write(piece)
            progress.update(len(piece))
            if file.size and content.tell() > file.size:
                raise ValueError(f"it sends more than the {file.size:,} bytes expected")
    content.flush()
    os.fsync(content.fileno())
