"""Archives are read in place; what leaves them, is no plain file or is damaged is refused."""

import gzip
import io
import random
import tarfile
import zipfile

import pytest

from epcore.data.archives import files_of_tar, open_tar, open_zip, read_member
from epcore.errors import UserError

CONTENT = {
    "birds/a.png": random.Random(0).randbytes(3000),
    "birds/ä b.png": b"",
    "list.txt": b"text\n" * 1000,
}
ESCAPES = [
    "../x",
    "/abs",
    "a/../../x",
    "a/..",
    "..",
    "//abs",
    "..\\x",
    "a\\..\\..\\x",
    "a/..\\x",
    "\\abs",
    "\\\\host\\x",
]


def member(name, size=0, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, target
    return info


def write_tar(path, content=CONTENT, mode="w:gz", more=()):
    """A tar of a folder, of files and of further members."""
    with tarfile.open(path, mode) as archive:
        archive.addfile(member("birds", kind=tarfile.DIRTYPE))
        for name, data in content.items():
            archive.addfile(member(name, len(data)), io.BytesIO(data))
        for info in more:
            archive.addfile(info)
    return path


def write_zip(path, content=CONTENT, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def read_tar(path):
    return {name: read_member(archive, info) for name, archive, info in files_of_tar(path)}


def read_zip(path):
    with open_zip(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


READ = {"tar": read_tar, "zip": read_zip}
WRITE = {"tar": write_tar, "zip": write_zip}


def refused(read, path, message):
    """The one line that names the archive, while its folder stays as it was."""
    before = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    with pytest.raises(UserError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    after = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    assert after == before


# -- what is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_tar_gives_its_files_in_its_order_and_nothing_else(tmp_path, monkeypatch, mode, form):
    monkeypatch.setattr(tarfile.TarFile, "format", form)
    content = {**CONTENT, "./dotted.txt": b"1", "deep/" * 60 + "x": b"2"}
    path = write_tar(tmp_path / "some.tar", content, mode)
    expected = {name.removeprefix("./"): data for name, data in content.items()}
    assert list(read_tar(path).items()) == list(expected.items())
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_gives_its_files(tmp_path, method):
    path = write_zip(tmp_path / "some.zip", method=method)
    assert read_zip(path) == CONTENT
    assert list(tmp_path.iterdir()) == [path]


def test_a_tar_inside_a_tar_is_read_in_place(tmp_path):
    inner = write_tar(tmp_path / "inner.tar", mode="w").read_bytes()
    path = write_tar(tmp_path / "outer.tar", {"inner.tar": inner}, "w")
    with open_tar(path) as outer, open_tar(path, outer.extractfile("inner.tar")) as archive:
        assert archive.extractfile("list.txt").read() == CONTENT["list.txt"]


# -- what leaves the archive -------------------------------------------------------------------


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("kind", READ)
def test_a_member_that_leaves_the_archive_is_refused(tmp_path, kind, name):
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    path = WRITE[kind](folder / "some", {"good.txt": b"good", name: b"evil"})
    refused(READ[kind], path, "the member .* leaves the archive; it is refused")
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


@pytest.mark.parametrize("name", ["a..b", "..a/b", "a/...", "a\\b"])
@pytest.mark.parametrize("kind", READ)
def test_dots_that_stay_inside_are_no_escape(tmp_path, kind, name):
    path = WRITE[kind](tmp_path / "some", {name: b"good"})
    assert list(READ[kind](path).values()) == [b"good"]


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (tarfile.SYMTYPE, "list.txt"),
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.LNKTYPE, "list.txt"),
        (tarfile.LNKTYPE, "../../x"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
    ],
)
def test_a_link_or_a_device_in_a_tar_is_refused(tmp_path, kind, target):
    path = write_tar(tmp_path / "some.tgz", more=[member("birds/odd", 0, kind, target)])
    refused(read_tar, path, r"birds/odd is no plain file; the archive is refused")


def test_a_folder_that_leaves_the_archive_is_refused(tmp_path):
    path = write_tar(tmp_path / "some.tgz", more=[member("../x", 0, tarfile.DIRTYPE)])
    refused(read_tar, path, "leaves the archive")


# -- damage ------------------------------------------------------------------------------------

DAMAGED = r"is no archive, or damaged \(.*\); get it again|is damaged \(.*\); get the archive again"


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"<html>not found</html>" * 100, bytes(10), gzip.compress(b"no tar" * 500)],
    ids=["empty", "letter", "page", "zeros", "gzip"],  # the last one holds the time
)
def test_what_is_no_archive_is_refused(tmp_path, kind, content):
    path = tmp_path / "some"
    path.write_bytes(content)
    refused(READ[kind], path, DAMAGED)


@pytest.mark.parametrize("kind", READ)
def test_a_missing_archive_is_named(tmp_path, kind):
    refused(READ[kind], tmp_path / "none", DAMAGED)


@pytest.mark.parametrize("kind", READ)
def test_a_truncated_archive_is_refused_wherever_it_ends(tmp_path, kind):
    whole = WRITE[kind](tmp_path / "some").read_bytes()
    for part in range(50):
        (tmp_path / "some").write_bytes(whole[: len(whole) * part // 50])
        refused(READ[kind], tmp_path / "some", DAMAGED)


def test_a_tar_that_ends_within_a_file_is_refused(tmp_path):
    path = write_tar(tmp_path / "some.tar", mode="w")
    whole = path.read_bytes()
    for end in (1024 + 1, 1024 + 2999):  # the header of the folder, that of the file, its content
        path.write_bytes(whole[:end])
        refused(read_tar, path, DAMAGED)


@pytest.mark.parametrize("kind", READ)
def test_a_damaged_byte_ends_in_content_or_in_a_message_never_in_a_crash(tmp_path, kind):
    path = WRITE[kind](tmp_path / "some", {"a/ä.txt": b"text" * 20, "b.png": bytes(range(99))})
    whole = path.read_bytes()
    refusals = 0
    for place in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :]
            path.write_bytes(damaged)
            try:
                READ[kind](path)
            except UserError:
                refusals += 1
    assert refusals > len(whole)


def test_a_corrupted_gzip_is_refused_even_if_it_can_be_inflated(tmp_path):
    words = random.Random(1).choices([b"ant ", b"bee ", b"cat "], k=50_000)
    noise = random.Random(2).randbytes(50_000)  # which gzip stores as it is
    path = write_tar(tmp_path / "some.tgz", {"a.txt": b"".join(words), "b.png": noise})
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 30):
        path.write_bytes(whole[:place] + bytes(100) + whole[place + 100 :])
        refused(read_tar, path, DAMAGED)


def test_a_content_that_is_not_its_checksum_is_refused_when_it_is_read(tmp_path):
    path = write_zip(tmp_path / "some.zip", {"a.txt": b"text" * 100}, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"texttext", b"textTEXT", 1))
    with open_zip(path) as archive:
        assert archive.namelist() == ["a.txt"]
    refused(read_zip, path, "damaged .*Bad CRC-32 for file 'a.txt'")


def test_an_encrypted_member_is_refused_when_it_is_read(tmp_path):
    path = write_zip(tmp_path / "some.zip", {"a.txt": b"text"})
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flag in the member's own header, and in the list at the end
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    refused(read_zip, path, "File 'a.txt' is encrypted")


def test_an_error_of_the_reader_passes_as_it_is(tmp_path):
    path = write_zip(tmp_path / "some.zip")
    with pytest.raises(UserError, match=r"^mine$"), open_zip(path):
        raise UserError("mine")
    with pytest.raises(KeyError), open_zip(path) as archive:
        archive.read("none.txt")
