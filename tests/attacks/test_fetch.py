"""Servers that send more, less or something else than they were asked for."""

import hashlib
from contextlib import suppress
from itertools import repeat

import numpy as np
import pytest
from file_server import BODY, serving

from epcore.data import fetch
from epcore.data.datasets import SourceFile
from epcore.errors import UserError

PIECE = fetch.PIECE
OTHER = np.random.default_rng(1).bytes(len(BODY))
KNOWN = {"size": len(BODY), "sha256": hashlib.sha256(BODY).hexdigest()}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as server:
        yield server


def download(folder, *urls, **known):
    path = folder / "some.tgz"
    fetch.download(SourceFile(path="some.tgz", urls=urls, **known), path)
    return path


def refused(folder, *urls, **known):
    """The one line that tells why; nothing has the final name then."""
    with pytest.raises(UserError) as caught:
        download(folder, *urls, **known)
    assert "\n" not in str(caught.value)
    assert not (folder / "some.tgz").exists()
    return str(caught.value)


# -- how much ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers", [{}, {"Content-Length": None, "Connection": "close"}], ids=["declared", "endless"]
)
def test_a_file_that_is_larger_is_stopped_at_the_size_that_is_expected(tmp_path, server, headers):
    url = server.page("/a", BODY * 400, headers=headers)
    message = f"it sends more than the {len(BODY):,} bytes expected"
    assert message in refused(tmp_path, url, **KNOWN)
    assert sum(server.sent()) < 40 * len(BODY)  # what the two ends keep on their way included
    assert not list(tmp_path.glob("*some.tgz*[!k]"))


def test_a_server_that_always_breaks_off_is_given_up_though_no_checksum_is_published(
    tmp_path, server
):
    """Nothing is kept between the attempts, so that each begins anew."""
    url = server.page("/a", cuts=repeat(PIECE))
    assert "it broke off" in refused(tmp_path, url, size=len(BODY))
    assert len(server.answers) == fetch.ATTEMPTS


@pytest.mark.parametrize("known", [KNOWN, {"size": len(BODY)}], ids=["checksum", "size"])
def test_a_body_that_ends_early_is_no_file_though_no_length_was_told(tmp_path, server, known):
    headers = {"Content-Length": None, "Connection": "close"}
    url = server.page("/a", BODY[:-1], headers=headers)
    message = f"it has {len(BODY) - 1:,} bytes, {len(BODY):,} are expected"
    assert message in refused(tmp_path, url, **known)
    assert len(server.answers) == 1


@pytest.mark.parametrize("page", [{"body": BODY + b"more"}, {"body": BODY[:-1]}])
def test_a_part_is_given_up_where_an_address_has_another_file(tmp_path, server, page):
    """It is asked once for the rest, once for all, and no more."""
    (tmp_path / ".some.tgz.part").write_bytes(BODY[: 2 * PIECE])
    refused(tmp_path, server.page("/a", **page), **KNOWN)
    assert server.starts() == [2 * PIECE, 0]
    assert not (tmp_path / ".some.tgz.part").exists()


def test_without_a_checksum_a_part_is_no_file_where_the_rest_is_refused(tmp_path, server):
    url = server.page("/a", refuses=True, cuts=[2 * PIECE])
    assert download(tmp_path, url, size=len(BODY)).read_bytes() == BODY
    assert server.starts() == [0, 0]


# -- https -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["http://example.invalid/a", "http://127.0.0.1.example.invalid/a",
     "http://127.0.0.1:80@example.invalid/a", "http://user:127.0.0.1@example.invalid/",
     "HTTP://EXAMPLE.invalid/a"],
)  # fmt: skip
def test_plain_http_is_no_address_nor_one_that_a_server_leads_to(tmp_path, server, url):
    assert "is not https" in refused(tmp_path, url, **KNOWN)
    led = server.page("/led", b"", 302, headers={"Location": url})
    assert "is not https" in refused(tmp_path, led, **KNOWN)
    good = server.page("/a")
    assert download(tmp_path, url, led, good, **KNOWN).read_bytes() == BODY


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.invalid/a", "/etc/passwd"])
def test_other_kinds_of_addresses_are_none(tmp_path, server, url):
    refused(tmp_path, url, **KNOWN)
    led = server.page("/led", b"", 302, headers={"Location": url})
    refused(tmp_path, led, **KNOWN)
    assert download(tmp_path, url, led, server.page("/a"), **KNOWN).read_bytes() == BODY


# -- answers to what was not asked -------------------------------------------------------------

ODD = {
    "a part that was not asked for": {"always": 206},
    "a part of nowhere": {"always": 206, "headers": {"Content-Range": "bytes */9"}},
    "a length that is no number": {"headers": {"Content-Length": "many"}},
    "a length of thousands of digits": {"headers": {"Content-Length": "9" * 5000}},
    "a negative length": {"headers": {"Content-Length": "-1"}},
    "two lengths": {"headers": {"Content-Length": "5, 6"}},
    "encoded": {"headers": {"Content-Encoding": "gzip"}},
    "encoded, and not told": {"headers": {"Content-Encoding": "identity, gzip"}},
    "nothing": {"always": 204},
    "something else": {"always": 203},
    "to nowhere": {"status": 302, "headers": {"Location": "http://["}},
    "to no host": {"status": 302, "headers": {"Location": "https://"}},
    "to itself": {"status": 302, "headers": {"Location": "/odd"}},
    "to a long name": {"status": 302, "headers": {"Location": f"https://{'x' * 300}.invalid/"}},
    "to a port that is none": {"status": 302, "headers": {"Location": "https://a:99999/"}},
    "to bytes": {"status": 302, "headers": {"Location": "\xff\xfe://\xe9"}},
}  # fmt: skip


@pytest.mark.parametrize("part", [b"", BODY[: 2 * PIECE], OTHER[: 2 * PIECE]])
@pytest.mark.parametrize("kind", ODD)
def test_an_odd_answer_ends_in_no_other_file_and_the_next_address_is_tried(
    tmp_path, server, kind, part
):
    odd = server.page("/odd", **ODD[kind])
    (tmp_path / ".some.tgz.part").write_bytes(part)
    with suppress(UserError):
        assert download(tmp_path, odd, **KNOWN).read_bytes() == BODY
    assert download(tmp_path, odd, server.page("/a"), **KNOWN).read_bytes() == BODY


# -- what changes between two parts ------------------------------------------------------------


def test_without_a_checksum_a_file_is_begun_anew(tmp_path, server):
    old = server.page("/a", OTHER, cuts=[2 * PIECE, *repeat(0, 3)])
    assert "it broke off" in refused(tmp_path, old, size=len(BODY))
    assert download(tmp_path, server.page("/a", BODY)).read_bytes() == BODY
    assert "Range" not in server.asked[-1]
