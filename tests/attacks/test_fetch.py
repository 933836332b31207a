"""Servers that send more, less or something else than they were asked for."""

import hashlib
from contextlib import suppress

import pytest
from file_server import BODY, serving

from epcore.data import fetch
from epcore.data.datasets import SourceFile
from epcore.errors import UserError

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


@pytest.mark.parametrize("known", [KNOWN, {"size": len(BODY)}], ids=["checksum", "size"])
def test_a_body_that_ends_early_is_no_file_though_no_length_was_told(tmp_path, server, known):
    headers = {"Content-Length": None, "Connection": "close"}
    url = server.page("/a", BODY[:-1], headers=headers)
    message = f"it has {len(BODY) - 1:,} bytes, {len(BODY):,} are expected"
    assert message in refused(tmp_path, url, **known)


# -- https -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["http://example.invalid/a", "http://127.0.0.1.example.invalid/a",
     "http://127.0.0.1:80@example.invalid/a", "http://user:127.0.0.1@example.invalid/",
     "HTTP://EXAMPLE.invalid/a"],
)  # fmt: skip
def test_plain_http_is_no_address_that_a_server_may_lead_to(tmp_path, server, url):
    led = server.page("/led", b"", 302, headers={"Location": url})
    assert "is not https" in refused(tmp_path, led, **KNOWN)
    good = server.page("/a")
    assert download(tmp_path, led, good, **KNOWN).read_bytes() == BODY


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.invalid/a", "/etc/passwd"])
def test_other_kinds_of_addresses_are_none(tmp_path, server, url):
    refused(tmp_path, url, **KNOWN)
    led = server.page("/led", b"", 302, headers={"Location": url})
    refused(tmp_path, led, **KNOWN)
    assert download(tmp_path, url, led, server.page("/a"), **KNOWN).read_bytes() == BODY


# -- answers to what was not asked -------------------------------------------------------------

ODD = {
    "a part that was not asked for": {"status": 206},
    "a length that is no number": {"headers": {"Content-Length": "many"}},
    "a length of thousands of digits": {"headers": {"Content-Length": "9" * 5000}},
    "a negative length": {"headers": {"Content-Length": "-1"}},
    "two lengths": {"headers": {"Content-Length": "5, 6"}},
    "encoded": {"headers": {"Content-Encoding": "gzip"}},
    "encoded, and not told": {"headers": {"Content-Encoding": "identity, gzip"}},
    "nothing": {"status": 204},
    "something else": {"status": 203},
    "to nowhere": {"status": 302, "headers": {"Location": "http://["}},
    "to no host": {"status": 302, "headers": {"Location": "https://"}},
    "to itself": {"status": 302, "headers": {"Location": "/odd"}},
    "to a long name": {"status": 302, "headers": {"Location": f"https://{'x' * 300}.invalid/"}},
    "to a port that is none": {"status": 302, "headers": {"Location": "https://a:99999/"}},
    "to bytes": {"status": 302, "headers": {"Location": "\xff\xfe://\xe9"}},
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_answer_ends_in_no_other_file_and_the_next_address_is_tried(tmp_path, server, kind):
    odd = server.page("/odd", **ODD[kind])
    with suppress(UserError):
        assert download(tmp_path, odd, **KNOWN).read_bytes() == BODY
    assert download(tmp_path, odd, server.page("/a"), **KNOWN).read_bytes() == BODY
