"""Files of sources, found on this machine or downloaded, and verified.

A file counts wherever it lies: below the data root or below the folder that the environment
variable EPCORE_MIRROR names. What is found is verified like a download, and never changed.
"""

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from tqdm import tqdm

from epcore.data.datasets import Source, SourceFile
from epcore.data.sources import stamp
from epcore.errors import UserError
from epcore.files import alone, naming, publish, write_text

CHUNK = 1 << 20
PIECE = 1 << 16  # what a connection that breaks off loses at most
ATTEMPTS = 3  # at each address, as long as nothing new arrives
TIMEOUT = (20, 60)  # seconds to connect, and between two pieces
BROKEN_OFF = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)
LARGE = 100 << 20  # bytes from which on verifying shows its progress


def places(root: Path) -> list[Path]:
    """The folders that a source's file may lie in."""
    mirror = os.environ.get("EPCORE_MIRROR")
    if mirror and not Path(mirror).is_dir():
        raise UserError(f"EPCORE_MIRROR names {mirror}, which is no folder; correct or unset it")
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
        digest = dict([published])
        print(f"  {path}: verified")
    else:
        computed = _digest_of(path, "sha256")
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


def _checksum(file: SourceFile) -> tuple[str, str] | None:
    """The published one, by its kind."""
    if file.sha256:
        return "sha256", file.sha256
    return ("md5", file.md5) if file.md5 else None


def _digest_of(path: Path, kind: str) -> str:
    digest, size = hashlib.new(kind), path.stat().st_size
    with (
        path.open("rb") as content,
        tqdm(total=size, desc=f"verify {path.name}", unit="B", unit_scale=True,
             disable=None if size > LARGE else True) as progress,
    ):  # fmt: skip
        while chunk := content.read(CHUNK):
            digest.update(chunk)
            progress.update(len(chunk))
    return digest.hexdigest()


def _verify(path: Path, file: SourceFile) -> None:
    """Raises `UserError` unless a file is the published one."""
    if wrong := _difference(path, file):
        raise UserError(
            f"{path} is not the published file: {wrong}; replace it, or move it away to have it "
            "downloaded"
        )


def _difference(path: Path, file: SourceFile) -> str | None:
    """What tells a file from the published one, without reading it if its size does."""
    wrong, published = _wrong_size(path.stat().st_size, file), _checksum(file)
    if wrong or published is None:
        return wrong
    kind, expected = published
    digest = _digest_of(path, kind)
    return None if digest == expected else f"its {kind} is {digest}, {expected} is expected"


def _wrong_size(size: int, file: SourceFile) -> str | None:
    if file.size is None or size == file.size:
        return None
    return f"it has {size:,} bytes, {file.size:,} are expected"


# -- downloading ----------------------------------------------------------------------------------


class _AnotherFileError(Exception):
    """An address sends a whole file that is not the published one."""


class _OfThisMachine(HTTPAdapter):
    """Plain http, which anybody on the way may change, reaches this machine and no other."""

    def send(self, request: Any, *arguments: Any, **settings: Any) -> Any:
        if urlsplit(request.url).hostname not in ("127.0.0.1", "localhost"):
            raise requests.exceptions.InvalidSchema(f"{request.url} is not https")
        return super().send(request, *arguments, **settings)


def download(file: SourceFile, path: Path) -> None:
    """Downloads to `path` from the first address that gives the published file.

    An interrupted download goes on where it stopped, the next time as well; `path` appears when
    the content is verified, not before. One process downloads it at a time; to the others it is
    then a file that was found.

    Raises:
        UserError: if no address gives it; the message has each one's reason.
    """
    waiting = f"epcore: waiting for another process that downloads {path}"
    with alone(path.with_name(f".{path.name}.lock"), waiting), naming(path):
        if path.is_file():
            _verify(path, file)
        else:
            _from_addresses(file, path)


def _from_addresses(file: SourceFile, path: Path) -> None:
    partial = path.with_name(f".{path.name}.part")
    reasons = []
    for url in file.urls:
        try:
            _from_address(url, file, path, partial)
            publish(partial, path)
            _note(partial).unlink(missing_ok=True)
            return
        except (_AnotherFileError, requests.RequestException, ValueError) as error:
            reasons.append(f"{url}: {_reason(error)}")
            print(f"  {reasons[-1]}", flush=True)
    if not partial.exists():
        _note(partial).unlink(missing_ok=True)
    raise UserError(
        f"{path.name} could not be downloaded ({'; '.join(reasons)}); try again later, or put the "
        f"file there yourself: {path}"
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


def _from_address(url: str, file: SourceFile, path: Path, partial: Path) -> None:
    inherited = partial.exists()  # from an earlier run or another address
    most, attempts = partial.stat().st_size if inherited else 0, 0
    while True:
        try:
            _stream(url, file, path, partial)
            break
        except BROKEN_OFF:
            size = partial.stat().st_size if partial.exists() else 0
            most, attempts = max(most, size), 0 if size > most else attempts + 1
            if attempts >= ATTEMPTS:
                raise
    if wrong := _difference(partial, file):
        partial.unlink()  # what is wrong from its first byte on cannot be completed
        if not inherited:
            raise _AnotherFileError(f"it sends another file: {wrong}")
        _from_address(url, file, path, partial)  # the wrong bytes may be the inherited ones


def _note(partial: Path) -> Path:
    """The file with the address and the version tag of a partial download."""
    return partial.with_suffix(".from")


def _unchanged(partial: Path, url: str) -> str | None:
    """What to ask an address for, that it sends the rest of the same file only."""
    try:
        address, _, tag = _note(partial).read_text(encoding="utf-8").partition("\n")
    except FileNotFoundError:
        return None
    return tag if address == url else None


def _stream(url: str, file: SourceFile, path: Path, partial: Path) -> None:
    """Appends what is missing to the partial file."""
    have, headers = 0, {"Accept-Encoding": "identity"}
    tag = _unchanged(partial, url)
    # Without a checksum nothing would tell that the file changed between its two parts.
    if partial.exists() and (tag or _checksum(file)):
        have = partial.stat().st_size
        if have == file.size:
            return
        headers |= {"Range": f"bytes={have}-"} if have else {}
        headers |= {"If-Range": tag} if have and tag else {}
    with requests.Session() as session:
        session.mount("http://", _OfThisMachine())
        with session.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if have and answer.status_code == requests.codes.requested_range_not_satisfiable:
                partial.unlink()
                raise requests.ConnectionError("the partial file is longer than the whole")
            answer.raise_for_status()
            _receive(answer, url, file, path, partial, have)


def _receive(
    answer: requests.Response, url: str, file: SourceFile, path: Path, partial: Path, have: int
) -> None:
    """Writes the body of an answer into the partial file.

    Raises:
        requests.RequestException: if it is not an answer to what was asked for.
        _AnotherFileError: if it is longer or shorter than the published file.
    """
    resumed = answer.status_code == requests.codes.partial_content
    start = answer.headers.get("Content-Range", "")
    if resumed and not (have and start.startswith(f"bytes {have}-")):
        raise requests.RequestException("it sends a part that was not asked for")
    if not resumed and answer.status_code != requests.codes.ok:
        raise requests.RequestException(f"the server answers {answer.status_code}")
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise requests.RequestException("it sends the file encoded")
    length = answer.headers.get("Content-Length", "")
    if length and not re.fullmatch("[0-9]{1,18}", length):
        raise requests.RequestException(f"it sends {length[:30]!r} bytes")
    if not (length or file.size or _checksum(file)):
        raise requests.RequestException("it does not say how long the file is")
    have, coming = have if resumed else 0, int(length or 0)
    if length and (wrong := _wrong_size(have + coming, file)):
        raise _AnotherFileError(f"it sends another file: {wrong}")
    _check_room(path, coming or (file.size or 0) - have)
    if not resumed:
        _keep_note(partial, url, answer)
    with (
        partial.open("ab" if resumed else "wb") as content,
        tqdm(total=have + coming or file.size, initial=have, desc=path.name, unit="B",
             unit_scale=True, disable=None) as progress,
    ):  # fmt: skip
        for chunk in answer.iter_content(PIECE):
            have += len(chunk)
            if file.size is not None and have > file.size:
                partial.unlink()
                raise _AnotherFileError(f"it sends more than the {file.size:,} bytes expected")
            content.write(chunk)
            progress.update(len(chunk))


def _keep_note(partial: Path, url: str, answer: requests.Response) -> None:
    tag = answer.headers.get("ETag", "")
    if not tag or tag.startswith("W/"):  # which may stand for two files
        tag = answer.headers.get("Last-Modified", "")
    if tag:
        write_text(_note(partial), f"{url}\n{tag}")
    else:
        _note(partial).unlink(missing_ok=True)


def _check_room(path: Path, needed: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise UserError(
            f"{path} needs {file_size(needed)}, {file_size(free)} are free; make room or choose "
            "another data_root in config/config.yaml"
        )


def file_size(size: int) -> str:
    """A number of bytes as people read it, such as 1.2 GB."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1e3:.1f} kB"
