"""What has its name is on the disk: its content before the name, and then the name."""

import hashlib
import os
from pathlib import Path

import pytest
from file_server import BODY, serving

from epcore.backbones.checkpoint import save_atomically
from epcore.data import fetch
from epcore.data.datasets import SourceFile
from epcore.files import publish, write_text

SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def events(monkeypatch):
    """What was flushed and renamed, in its order; files by what they held, folders by name."""
    seen = []
    flush, rename = os.fsync, Path.replace

    def flushed(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(("flushed", path.name if path.is_dir() else path.stat().st_size))
        flush(descriptor)

    def renamed(self, target):
        seen.append(("renamed", Path(target).name))
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", renamed)
    return seen


def of(path):
    return [("flushed", path.stat().st_size), ("renamed", path.name), ("flushed", path.parent.name)]


def test_a_text(events, tmp_path):
    write_text(tmp_path / "facts.json", "{}")
    assert events == of(tmp_path / "facts.json")


def test_a_checkpoint(events, tmp_path):
    save_atomically(tmp_path / "net.pt", {"format": "x"})
    assert events == of(tmp_path / "net.pt")


def test_features_of_hours(events, tmp_path):
    part = tmp_path / "features.npy.part"
    part.write_bytes(b"features")
    publish(part, tmp_path / "features.npy")
    assert events == of(tmp_path / "features.npy")


def test_a_download_is_on_the_disk_before_it_has_its_name(events, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    path = tmp_path / "archive.tgz"
    with serving() as server:
        fetch.download(SourceFile(path=path.name, urls=[server.page("/a")], sha256=SHA256), path)
    (flushed, size), *_ = events
    assert (flushed, size) == ("flushed", path.stat().st_size)


def test_a_file_system_that_flushes_no_folders_is_no_obstacle(monkeypatch, tmp_path):
    real = os.fsync

    def refusing(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_dir():
            raise OSError(22, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", refusing)
    write_text(tmp_path / "facts.json", "{}")
    assert (tmp_path / "facts.json").read_text() == "{}"
