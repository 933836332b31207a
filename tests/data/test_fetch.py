"""Files of sources: found or downloaded from a server that misbehaves, and always verified."""

import hashlib
import json
import re
import subprocess
import sys
from itertools import repeat

import numpy as np
import pytest
import yaml
from file_server import BODY, Server, serving

from epcore.commands import fetch as fetch_command
from epcore.data import fetch
from epcore.data.sources import Sources
from epcore.errors import UserError

PIECE = fetch.PIECE
OTHER = np.random.default_rng(1).bytes(5 * PIECE)
SHA256, MD5 = hashlib.sha256(BODY).hexdigest(), hashlib.md5(BODY).hexdigest()
HTML = b"<html>Please log in</html>"
PATH = "birds/birds.tgz"
STEPS = ["Register.", "Download the tar.", "Put it there."]


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("EPCORE_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving() as server:
        yield server


# -- the settings ------------------------------------------------------------------------------

DATASETS = {
    "bird-set": {
        "kind": "cub",
        "title": "Birds",
        "images": "birds",
        "image_size": 84,
        "pixels": {},
        "expected": {"classes": {"base": 1, "val": 1, "novel": 1}},
    },
    "drawn": {
        "kind": "glyphs",
        "title": "Characters",
        "selection": "mini",
        "image_size": 28,
        "images_per_class": {"base": 1, "val": 1, "novel": 1},
        "seed": 1,
    },
    "mine": {"kind": "folder", "title": "Mine", "path": "mine", "image_size": 84},
}


def source(files):
    """A source with these files; a list of addresses is a file with its size and sha256."""
    usual = {"path": PATH, "size": len(BODY), "sha256": SHA256}
    files = {k: usual | {"urls": f} if isinstance(f, list) else f for k, f in files.items()}
    told = {"title": "Birds of 2011", "license": "CC BY", "terms": "Cite them.", "by_hand": STEPS}
    return told | {"files": files}


def write_settings(folder, sources):
    (folder / "config").mkdir(exist_ok=True)
    content = {"sources": sources, "datasets": DATASETS}
    (folder / "config" / "datasets.yaml").write_text(
        yaml.safe_dump(content, sort_keys=False), encoding="utf-8"
    )


def fetched(folder, files, receipt=None):
    """Fetches a source with these files below folder/data; where its usual file lies then."""
    write_settings(folder, {"birds": source(files)})
    fetch_command.run(["birds"], folder / "config", folder / "data", receipt)
    return folder / "data" / PATH


def refused(folder, files):
    """The one line that tells why, while no file of the final name appears."""
    with pytest.raises(UserError) as caught:
        fetched(folder, files)
    assert "\n" not in str(caught.value)
    assert not (folder / "data" / PATH).exists()
    return str(caught.value)


def below(folder):
    """The files below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(folder)) for path in files)


def lay(folder, content=BODY, path=PATH):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content)
    return folder / path


def state(path):
    return path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino


# -- downloading -------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [{"sha256": SHA256, "size": len(BODY)}, {"md5": MD5}])
def test_a_file_is_downloaded_once_and_nothing_else_is_left(tmp_path, server, known):
    files = {"archive": {"path": PATH, "urls": [server.page("/a")]} | known}
    path = fetched(tmp_path, files)
    assert path.read_bytes() == BODY
    assert below(tmp_path / "data") == [PATH]
    assert server.sent() == [len(BODY)]


@pytest.mark.parametrize("hangs", [True, False])
def test_a_download_that_breaks_off_is_begun_anew(tmp_path, server, monkeypatch, hangs):
    monkeypatch.setattr(fetch, "TIMEOUT", (5, 0.3))
    url = server.page("/a", cuts=[2 * PIECE], hangs=hangs)
    assert fetched(tmp_path, {"archive": [url]}).read_bytes() == BODY
    assert server.sent() == [2 * PIECE, len(BODY)]
    assert below(tmp_path / "data") == [PATH]


def test_a_server_that_never_answers_is_given_up(tmp_path, server, monkeypatch):
    monkeypatch.setattr(fetch, "TIMEOUT", (5, 0.1))
    url = server.page("/a", cuts=repeat("silence"))
    assert f"{url}: no connection, or it broke off" in refused(tmp_path, {"archive": [url]})
    assert len(server.answers) == fetch.ATTEMPTS
    assert below(tmp_path / "data") == []


# -- mirrors -----------------------------------------------------------------------------------

WRONG = {
    "404": ({"body": b"gone", "status": 404}, "404 Client Error"),
    "500": ({"body": b"oops", "status": 500}, "500 Server Error"),
    "page": ({"body": HTML}, f"has {len(HTML)} bytes, {len(BODY):,} are expected"),
    "short": ({"body": BODY[:-1]}, f"has {len(BODY) - 1:,} bytes, {len(BODY):,} are expected"),
    "long": ({"body": BODY + b"!"}, f"has {len(BODY) + 1:,} bytes, {len(BODY):,} are expected"),
    "other": ({"body": OTHER}, f"sha256 is {hashlib.sha256(OTHER).hexdigest()}, {SHA256} is"),
    "broken": ({"cuts": repeat(0)}, "no connection, or it broke off"),
    "truncated": ({"cuts": repeat(len(BODY) - 1)}, "it broke off"),
}


def dead_address():
    """An address at which nobody listens."""
    silent = Server()
    port = silent.server_port
    silent.server_close()
    return f"http://127.0.0.1:{port}/a"


@pytest.mark.parametrize("kind", WRONG)
def test_nothing_wrong_gets_the_final_name_or_spoils_the_next_run(tmp_path, server, kind):
    settings, reason = WRONG[kind]
    message = refused(tmp_path, {"archive": [server.page("/a", **settings)]})
    assert reason in message
    assert below(tmp_path / "data") == []
    assert fetched(tmp_path, {"archive": [server.page("/a")]}).read_bytes() == BODY


def test_if_all_addresses_fail_each_is_told_with_its_reason_and_where_to_put_the_file(
    tmp_path, server
):
    urls = [server.page(f"/{kind}", **settings) for kind, (settings, _) in WRONG.items()]
    message = refused(tmp_path, {"archive": [dead_address(), *urls]})
    for url, (_, reason) in zip(urls, WRONG.values(), strict=True):
        assert re.search(rf"{re.escape(url)}: [^;]*{re.escape(reason)}", message)
    assert message.endswith(f"or put the file there yourself: {tmp_path / 'data' / PATH}")


# -- files that are here -----------------------------------------------------------------------


@pytest.mark.parametrize("known", [{"sha256": SHA256, "size": len(BODY)}, {"md5": MD5}])
def test_a_file_below_the_data_root_is_verified_and_left_as_it_is(tmp_path, server, known):
    path = lay(tmp_path / "data")
    before = state(path)
    fetched(tmp_path, {"archive": {"path": PATH, "urls": [server.page("/a")]} | known})
    assert state(path) == before
    assert server.answers == []


def test_a_file_below_the_mirror_is_used_from_there(tmp_path, server, monkeypatch):
    (tmp_path / "mirror").mkdir(exist_ok=True)
    monkeypatch.setenv("EPCORE_MIRROR", str(tmp_path / "mirror"))
    path = lay(tmp_path / "mirror")
    before = state(path)
    fetched(tmp_path, {"archive": [server.page("/a")]}, tmp_path / "receipt.json")
    assert state(path) == before
    assert below(tmp_path / "mirror") == [PATH]
    assert not (tmp_path / "data").exists()
    assert Sources.read([tmp_path / "receipt.json"]).path("birds", "archive") == path
    assert server.answers == []


def test_what_the_mirror_lacks_is_downloaded_below_the_data_root(tmp_path, server, monkeypatch):
    (tmp_path / "mirror").mkdir(exist_ok=True)
    monkeypatch.setenv("EPCORE_MIRROR", str(tmp_path / "mirror"))
    assert fetched(tmp_path, {"archive": [server.page("/a")]}).read_bytes() == BODY
    assert list((tmp_path / "mirror").iterdir()) == []


def test_a_mirror_that_is_no_folder_is_named(tmp_path, server, monkeypatch):
    monkeypatch.setenv("EPCORE_MIRROR", str(tmp_path / "miror"))
    with pytest.raises(UserError, match=r"EPCORE_MIRROR names .*miror, which is no folder"):
        fetched(tmp_path, {"archive": [server.page("/a")]})
    assert server.answers == []


@pytest.mark.parametrize(
    ("place", "urls", "content", "message"),
    [
        ("data", True, OTHER, f"sha256 is {hashlib.sha256(OTHER).hexdigest()}, {SHA256} is"),
        ("mirror", False, BODY[:-5], f"has {len(BODY) - 5:,} bytes, {len(BODY):,} are expected"),
    ],
)
def test_a_wrong_file_is_an_error_and_stays(
    tmp_path, server, monkeypatch, place, urls, content, message
):
    (tmp_path / "mirror").mkdir(exist_ok=True)
    monkeypatch.setenv("EPCORE_MIRROR", str(tmp_path / "mirror"))
    path = lay(tmp_path / place, content)
    before = state(path)
    with pytest.raises(UserError) as caught:
        fetched(tmp_path, {"archive": [server.page("/a")] if urls else []})
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert str(caught.value).endswith("replace it, or move it away to have it downloaded")
    assert state(path) == before
    assert server.answers == []


def test_without_a_published_checksum_the_computed_one_is_kept_and_said_to_be_computed(
    tmp_path, server, capsys
):
    files = {"archive": {"path": PATH, "urls": [server.page("/a")]}}
    fetched(tmp_path, files, tmp_path / "receipt.json")
    assert f"sha256 {SHA256}; none is published" in capsys.readouterr().out
    checksums = Sources.read([tmp_path / "receipt.json"]).checksums()
    told = {"sha256": SHA256, "checksum": "computed here: none is published"}
    assert checksums == {"birds": {"birds.tgz": told}}


# -- sources that no program may download ------------------------------------------------------

GATED = {"archive": {"path": PATH, "unpacked": "birds/train", "size": len(BODY), "sha256": SHA256}}


def test_a_gated_source_is_asked_for_with_its_steps_and_nothing_is_requested(tmp_path, server):
    server.page("/a")
    message = refused(tmp_path, GATED)
    assert "not on this machine, and to be got by hand (Birds of 2011)" in message
    assert "(1) Register. (2) Download the tar. (3) Put it there." in message
    assert f"the file {tmp_path / 'data' / PATH}, or the folder" in message
    assert f"the folder {tmp_path / 'data' / 'birds' / 'train'};" in message
    assert "EPCORE_MIRROR" in message
    assert server.answers == []
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("place", ["data", "mirror"])
def test_an_unpacked_folder_is_as_good_as_the_file(tmp_path, server, monkeypatch, place):
    (tmp_path / "mirror").mkdir(exist_ok=True)
    monkeypatch.setenv("EPCORE_MIRROR", str(tmp_path / "mirror"))
    image = lay(tmp_path / place, b"image", "birds/train/wren/1.jpg")
    fetched(tmp_path, GATED, tmp_path / "receipt.json")
    folder = tmp_path / place / "birds" / "train"
    assert Sources.read([tmp_path / "receipt.json"]).path("birds", "archive") == folder
    assert image.read_bytes() == b"image"
    assert below(tmp_path / place) == ["birds/train/wren/1.jpg"]


# -- receipts ----------------------------------------------------------------------------------


@pytest.fixture
def receipt(tmp_path, server):
    """The receipt of a file that was verified."""
    fetched(tmp_path, {"archive": [server.page("/a")]}, tmp_path / "receipts" / "birds.json")
    return tmp_path / "receipts" / "birds.json"


def test_a_receipt_holds_path_size_time_and_checksum(tmp_path, receipt):
    path = tmp_path / "data" / PATH
    assert json.loads(receipt.read_text(encoding="utf-8")) == {
        "source": "birds",
        "files": {
            "archive": {
                "path": str(path),
                "size": len(BODY),
                "changed_ns": path.stat().st_mtime_ns,
                "sha256": SHA256,
            }
        },
    }
    assert Sources.read([receipt]).path("birds", "archive") == path
    assert Sources.read([receipt]).checksums() == {"birds": {"birds.tgz": {"sha256": SHA256}}}


@pytest.mark.parametrize("second", [None, OTHER])
def test_a_receipt_is_written_when_every_file_is_verified_and_not_before(tmp_path, server, second):
    files = {"a": [server.page("/a")], "b": {"path": "b.tgz", "sha256": SHA256}}
    if second is not None:
        lay(tmp_path / "data", second, "b.tgz")
    with pytest.raises(UserError, match=r"birds: .* by hand|b\.tgz is not the published file"):
        fetched(tmp_path, files, tmp_path / "receipt.json")
    assert (tmp_path / "data" / PATH).read_bytes() == BODY
    assert not (tmp_path / "receipt.json").exists()
    lay(tmp_path / "data", BODY, "b.tgz")
    fetched(tmp_path, files, tmp_path / "receipt.json")
    assert set(Sources.read([tmp_path / "receipt.json"]).receipts["birds"]) == {"a", "b"}


def test_a_missing_receipt_is_named_with_the_remedy(tmp_path):
    with pytest.raises(UserError, match=r"none\.json does not exist; run `epcore fetch` with"):
        Sources.read([tmp_path / "none.json"])


@pytest.mark.parametrize(
    "happens",
    [
        lambda path: path.write_bytes(BODY[:-1] + b"?"),
        lambda path: path.write_bytes(BODY + b"?"),
        lambda path: path.rename(path.with_name("elsewhere.tgz")),
    ],
    ids=["changed", "longer", "moved"],
)
def test_a_file_that_is_no_longer_the_verified_one_is_refused(tmp_path, receipt, happens):
    sources, path = Sources.read([receipt]), tmp_path / "data" / PATH
    happens(path)
    with pytest.raises(UserError, match=r"birds\.tgz is not the file that was verified: .*fetch"):
        sources.path("birds", "archive")


def test_a_source_without_a_receipt_is_named(receipt):
    for source_name, key in (("plants", "archive"), ("birds", "labels")):
        with pytest.raises(UserError, match=f"no receipt names '{key}' of .*'{source_name}'"):
            Sources.read([receipt]).path(source_name, key)


# -- names and what is printed -----------------------------------------------------------------


def test_a_data_set_stands_for_its_sources_and_each_is_fetched_once(tmp_path, server, capsys):
    write_settings(tmp_path, {"birds": source({"archive": [server.page("/a")]})})
    fetch_command.run(
        ["bird-set", "birds", "bird-set"], tmp_path / "config", tmp_path / "data", None
    )
    assert server.sent() == [len(BODY)]
    assert capsys.readouterr().out.count("birds: Birds of 2011") == 1


def test_the_data_root_is_that_of_the_workflow_unless_one_is_given(tmp_path, server):
    write_settings(tmp_path, {"birds": source({"archive": [server.page("/a")]})})
    config = "scale: demo\nallow_cpu: false\ndata_root: {}\n"
    (tmp_path / "config/config.yaml").write_text(config.format(tmp_path / "disk"))
    fetch_command.run(["birds"], tmp_path / "config", None, None)
    assert (tmp_path / "disk" / PATH).is_file()


def test_without_names_it_tells_what_there_is_and_requests_nothing(tmp_path, server, capsys):
    files = {
        "here": {"path": "here.csv", "urls": [server.page("/here")]},
        "missing": [server.page("/a")],
        "gated": {"path": "val.tar", "size": 147_897_477_120},
    }
    write_settings(tmp_path, {"birds": source(files)})
    here = lay(tmp_path / "data", b"text", "here.csv")
    fetch_command.run([], tmp_path / "config", tmp_path / "data", None)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:6] == [
        "birds: Birds of 2011",
        "for bird-set",
        "license: CC BY. Cite them.",
        f"here.csv: found: {here}",
        f"{PATH}: 327.7 kB, to be downloaded",
        "val.tar: 147.9 GB, to be got by hand",
    ]
    assert server.answers == []


# -- the real command line ---------------------------------------------------------------------


def command(folder, *arguments):
    ways = ["--settings", str(folder / "config"), "--root", str(folder / "data")]
    return [sys.executable, "-m", "epcore", "fetch", *ways, *arguments]


def epcore(folder, *arguments):
    run = subprocess.run(command(folder, *arguments), capture_output=True, text=True, check=False)
    return run.returncode, run.stdout, run.stderr


def test_the_command_line_tells_license_and_terms_and_writes_the_receipt(tmp_path, server):
    write_settings(tmp_path, {"birds": source({"archive": [server.page("/a")]})})
    receipt = tmp_path / "receipt.json"
    code, out, err = epcore(tmp_path, "birds", "--receipt", str(receipt))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "birds: Birds of 2011. License: CC BY. Cite them.",
        f"  {tmp_path / 'data' / PATH}: verified",
    ]
    assert Sources.read([receipt]).path("birds", "archive").read_bytes() == BODY


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["brids"], "unknown data set or source 'brids'; did you mean 'birds'?"),
        (["birds"], "birds.tgz could not be downloaded (http://127.0.0.1:"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, server, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    files = {"archive": [server.page("/a", b"", 404)]}
    write_settings(tmp_path, {"birds": source(files), "plants": source(files)})
    code, _, err = epcore(tmp_path, *arguments)
    assert code == 2
    assert err.startswith(f"epcore: {message}")
    assert len(err.splitlines()) == 1
    assert below(tmp_path) == ["config/datasets.yaml"]
