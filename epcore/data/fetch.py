"""Files of sources, found on this machine or downloaded, and verified.

A file counts wherever it lies: below the data root or below the folder that the environment
variable EPCORE_MIRROR names. What is found is verified like a download, and never changed.
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pooch
import requests
from tqdm import tqdm

from epcore.data.datasets import Source, SourceFile
from epcore.data.sources import stamp
from epcore.errors import UserError
from epcore.files import atomic

PIECE = 1 << 16  # bytes that are written at once
ATTEMPTS = 3  # at each address
TIMEOUT = (20, 60)  # seconds to connect, and between two pieces
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
    elif wrong := _difference(path, file):
        raise UserError(
            f"{path} is not the published file: {wrong}",
            "replace it, or move it away to have it downloaded",
        )
    if digest := _checksum(file):
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


def _checksum(file: SourceFile) -> dict[str, str]:
    """The published checksum of a file by its kind; of several the best."""
    if file.sha256:
        return {"sha256": file.sha256}
    return {"md5": file.md5} if file.md5 else {}


def _difference(path: Path, file: SourceFile) -> str | None:
    """How a file differs from the published one; without a checksum its size tells."""
    size = path.stat().st_size
    if file.size not in (None, size):  # known without hashing up to 147 GB
        return f"it has {size:,} bytes, {file.size:,} are expected"
    for kind, expected in _checksum(file).items():
        if (digest := pooch.file_hash(str(path), alg=kind)) != expected:
            return f"its {kind} is {digest}, {expected} is expected"
    return None


# -- downloading ----------------------------------------------------------------------------------


def download(file: SourceFile, path: Path) -> None:
    """Downloads to `path` from the first address that gives the published file.

    `path` appears when the content is verified, not before.

    Raises:
        UserError: if no address gives it; the message has each one's reason.
    """
    reasons = {}
    for url in file.urls * ATTEMPTS:
        try:
            with atomic(path) as temporary:
                _receive(url, temporary, file)
            return
        except ValueError as error:
            reasons[url] = " ".join(str(error).split())
            print(f"  {url}: {reasons[url]}", flush=True)
    raise UserError(
        f"{path.name} could not be downloaded ({'; '.join(map(': '.join, reasons.items()))})",
        f"try again later, or put the file there yourself: {path}",
    )


def _receive(url: str, output: Path, file: SourceFile) -> None:
    """Downloads from one address, and verifies what it gives.

    Raises:
        ValueError: with the reason, if the connection fails or the content is another.
    """
    name = Path(file.path).name
    # pooch sets the total itself, but asks for one before.
    with tqdm(total=1, desc=name, unit="B", unit_scale=True, disable=None) as progress:
        receive = pooch.HTTPDownloader(
            progress,
            PIECE,
            timeout=TIMEOUT,
            headers={"Accept-Encoding": "identity"},
            hooks={"response": _refuse_plain_http},
        )
        try:
            receive(url, output, None)
        except BROKEN_OFF:
            raise ValueError("no connection, or it broke off") from None
        except requests.RequestException as error:
            raise ValueError(str(error)) from None
    if wrong := _difference(output, file):
        raise ValueError(f"it sends another file: {wrong}")


def _refuse_plain_http(answer: requests.Response, **_: Any) -> None:
    """Refuses to be led to plain http, which anybody on the way may change, but on this machine."""
    url = urlsplit(urljoin(answer.url, answer.headers.get("Location", "")))
    if url.scheme != "https" and url.hostname not in ("127.0.0.1", "localhost"):
        raise requests.exceptions.InvalidSchema(f"{url.geturl()} is not https")
