"""Files of sources, found on this machine or downloaded, and verified.

A file counts wherever it lies: below the data root or below the folder that the environment
variable EPCORE_MIRROR names. What is found is verified like a download, and never changed.
"""

import os
import shutil
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch
import requests
from filelock import FileLock, Timeout
from requests.adapters import HTTPAdapter
from rich.filesize import decimal as file_size
from tqdm import tqdm

from epcore.data.datasets import Source, SourceFile
from epcore.data.sources import stamp
from epcore.errors import UserError
from epcore.files import named_in_os_error

PIECE = 1 << 16  # what a connection that breaks off loses at most
ATTEMPTS = 3  # at each address, as long as nothing new arrives
TIMEOUT = (20, 60)  # seconds to connect, and between two pieces
pooch.get_logger().setLevel("ERROR")  # what it tells, `obtain` and the progress bar tell too
BROKEN_OFF = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)


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
    with _turn(path), named_in_os_error(path):
        if path.is_file():
            _verify(path, file)
        else:
            _from_addresses(file, path)


def _turn(path: Path) -> AbstractContextManager[Any]:
    """Waits until no other process downloads a file; says so if it must."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        return lock.acquire(blocking=False)
    except Timeout:
        print(f"epcore: waiting for another process that downloads {path}", file=sys.stderr)
        return lock.acquire()


def _from_addresses(file: SourceFile, path: Path) -> None:
    reasons = []
    for url in file.urls:
        try:
            _from_address(url, file, path)
            return
        except (requests.RequestException, ValueError) as error:
            reasons.append(f"{url}: {_reason(error)}")
            print(f"  {reasons[-1]}", flush=True)
    raise UserError(
        f"{path.name} could not be downloaded ({'; '.join(reasons)})",
        f"try again later, or put the file there yourself: {path}",
    )


def _reason(error: Exception) -> str:
    """The cause of a failed download in one line; requests has a chain of them."""
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code}"
    if isinstance(error, BROKEN_OFF):
        return "no connection, or it broke off"
    return " ".join(str(error).split())


def _from_address(url: str, file: SourceFile, path: Path) -> None:
    """Lets pooch verify and name what `_receive` gets of an address, in several attempts."""
    partial = path.with_name(f".{path.name}.part")

    def downloader(url: str, output: str, _: Any) -> None:
        _receive(url, file, path, partial)
        partial.replace(output)  # which pooch removes if its checksum is wrong

    largest, failures = _size(partial), 0
    while True:
        if not _checksum(file):
            partial.unlink(missing_ok=True)  # nothing would tell that the file changed meanwhile
        have = _size(partial)
        try:
            pooch.retrieve(url, _checksum(file), path.name, path.parent, downloader=downloader)
            return
        except BROKEN_OFF:
            arrived = _size(partial)
            failures = 0 if arrived > largest else failures + 1
            largest = max(largest, arrived)
            if failures == ATTEMPTS:
                raise
        except ValueError:
            partial.unlink(missing_ok=True)
            if not have:  # else the wrong bytes may be those that were there
                raise


def _size(partial: Path) -> int:
    """Bytes of a file that are here; 0 of one that is not."""
    return partial.stat().st_size if partial.exists() else 0


def _receive(url: str, file: SourceFile, path: Path, partial: Path) -> None:
    """Appends what is missing to the partial file.

    Raises:
        requests.RequestException: if the answer is not one to what was asked for.
        ValueError: if it is longer or shorter than the published file.
    """
    have = _size(partial)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.Session() as session:
        session.mount("http://", _OfThisMachine())
        with session.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if answer.status_code == requests.codes.requested_range_not_satisfiable:
                return  # nothing is missing, or pooch finds out
            have = _start(answer, have)
            length = have + int(answer.headers.get("Content-Length") or -have)
            if wrong := length and _wrong_size(length, file):
                raise ValueError(f"it sends another file: {wrong}")
            if not (length or file.size or _checksum(file)):
                raise requests.RequestException("it does not say how long the file is")
            _check_room(path, (file.size or length) - have)
            with (
                partial.open("ab" if have else "wb") as content,
                tqdm(total=file.size or length or None, initial=have, desc=path.name, unit="B",
                     unit_scale=True, disable=None) as progress,
            ):  # fmt: skip
                for piece in answer.iter_content(PIECE):
                    content.write(piece)
                    progress.update(len(piece))
                    if file.size is not None and content.tell() > file.size:
                        raise ValueError(f"it sends more than the {file.size:,} bytes expected")
                if wrong := _wrong_size(content.tell(), file):
                    raise ValueError(f"it sends another file: {wrong}")
                content.flush()
                os.fsync(content.fileno())


def _start(answer: requests.Response, have: int) -> int:
    """Where an answer begins: at what was asked for, or at the beginning of the file."""
    answer.raise_for_status()
    resumed = answer.status_code == requests.codes.partial_content
    start = answer.headers.get("Content-Range", "")
    if resumed and not (have and start.startswith(f"bytes {have}-")):
        raise requests.RequestException("it sends a part that was not asked for")
    if not resumed and answer.status_code != requests.codes.ok:
        raise requests.RequestException(f"the server answers {answer.status_code}")
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise requests.RequestException("it sends the file encoded")
    return have if resumed else 0


def _check_room(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise UserError(
            f"{path} needs {file_size(needed)}, {file_size(free)} are free",
            "make room or choose another data_root in config/config.yaml",
        )
