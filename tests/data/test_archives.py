"""Tar archives are read in place, and damage is told."""

import gzip
import io
import random
import tarfile

import pytest

from epcore.data.archives import files_of_tar
from epcore.errors import UserError

CONTENT = {
    "birds/a.png": random.Random(0).randbytes(3000),
    "birds/ä b.png": b"",
    "list.txt": b"text\n" * 1000,
}


def write_tar(path, content=CONTENT, mode="w:gz"):
    """A tar of a folder and of files."""
    with tarfile.open(path, mode) as archive:
        folder = tarfile.TarInfo("birds")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def read_tar(path):
    return {name: read() for name, read in files_of_tar(path)}


def refused(path, message):
    """The one line that names the archive, while its folder stays as it was."""
    before = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    with pytest.raises(UserError, match=message) as caught:
        read_tar(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    after = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    assert after == before


# -- what is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_tar_gives_its_files_in_its_order_and_nothing_else(tmp_path, monkeypatch, mode, form):
    monkeypatch.setattr(tarfile.TarFile, "format", form)
    content = {**CONTENT, "./dotted.txt": b"1", "deep/" * 60 + "x": b"2"}
    path = write_tar(tmp_path / "some.tar", content, mode)
    expected = {name.removeprefix("./"): data for name, data in content.items()}
    assert list(read_tar(path).items()) == list(expected.items())
    assert list(tmp_path.iterdir()) == [path]


def test_a_tar_inside_a_tar_is_read_in_place(tmp_path):
    inner = write_tar(tmp_path / "inner.tar", mode="w").read_bytes()
    path = write_tar(tmp_path / "outer.tar", {"inner.tar": inner}, "w")
    with tarfile.open(path) as outer, path.open("rb") as content:
        content.seek(outer.getmember("inner.tar").offset_data)
        files = dict(files_of_tar(path, content))
        assert {name: read() for name, read in files.items()} == CONTENT


# -- damage ------------------------------------------------------------------------------------

DAMAGED = r"is no archive, or damaged \(.*\); get it again"


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"<html>not found</html>" * 100, bytes(10), gzip.compress(b"no tar" * 500)],
    ids=["empty", "letter", "page", "zeros", "gzip"],  # the last one holds the time
)
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "some"
    path.write_bytes(content)
    refused(path, DAMAGED)


def test_a_missing_archive_is_named(tmp_path):
    refused(tmp_path / "none", DAMAGED)


def test_a_truncated_archive_is_refused_wherever_it_ends(tmp_path):
    whole = write_tar(tmp_path / "some").read_bytes()
    for part in range(50):
        (tmp_path / "some").write_bytes(whole[: len(whole) * part // 50])
        refused(tmp_path / "some", DAMAGED)


def test_a_tar_that_ends_within_a_file_is_refused(tmp_path):
    path = write_tar(tmp_path / "some.tar", mode="w")
    whole = path.read_bytes()
    for end in (1024 + 1, 1024 + 2999):  # the header of the folder, that of the file, its content
        path.write_bytes(whole[:end])
        refused(path, DAMAGED)
