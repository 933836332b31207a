"""Pictures made to run programs, to fill the memory or to end a build without naming themselves."""

import io
import os
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from epcore.data.datasets import Pixels
from epcore.data.pictures import MOST_PIXELS, decode
from epcore.errors import UserError


def read(data, upright=True):
    return decode(data, "some.png", 8, Pixels(), upright=upright)


def refused(data, reason):
    with pytest.raises(UserError, match=reason) as caught:
        read(data)
    assert str(caught.value).startswith("some.png cannot be read as an image (")
    assert "\n" not in str(caught.value)


def encoded(picture, kind="PNG", **settings):
    file = io.BytesIO()
    picture.save(file, kind, **settings)
    return file.getvalue()


# -- programs ----------------------------------------------------------------------------------

EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 8 8
%%EndComments
showpage
%%EOF
"""


@pytest.fixture
def ghostscript(tmp_path, monkeypatch):
    """A program of its name; the file that it leaves when it is run."""
    (tmp_path / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path / 'effect'}\n")
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    monkeypatch.setattr(EpsImagePlugin, "gs_windows_binary", None)
    return tmp_path / "effect"


def test_postscript_under_a_pictures_name_starts_no_program(ghostscript):
    refused(EPS, "none of AVIF, .*, JPEG, PNG, ")
    assert not ghostscript.exists()


@pytest.mark.parametrize("kind", ["EPS", "ICO", "PCX", "PDF", "SGI", "TGA", "XBM", "ICNS", "DDS"])
def test_kinds_of_files_that_no_data_set_has_are_not_opened(kind):
    mode = "1" if kind == "XBM" else "RGB"
    refused(
        encoded(Image.new(mode, (16, 16)), kind),
        "none of AVIF, .*, JPEG, PNG, ",
    )


# -- memory ------------------------------------------------------------------------------------


def png(width, height):
    """One bit a pixel, all of them 0: a thousandth of what it becomes."""

    def chunk(name, data):
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(10_000))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


@pytest.mark.parametrize(("width", "height"), [(9460, 9460), (13_000, 13_000), (1, 100_000_000)])
@pytest.mark.filterwarnings("ignore")  # Pillow warns as well
def test_a_picture_of_too_many_pixels_is_refused_before_it_is_read(width, height):
    assert width * height > MOST_PIXELS
    refused(png(width, height), rf"it has {width * height:,} pixels, 89,478,485 are the most")


def test_up_to_there_pillow_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refused(png(9459, 9459), "truncated|broken")


# -- EXIF --------------------------------------------------------------------------------------


def exif(*tags):
    """Big-endian EXIF data of tags: number, type, count, four bytes of value."""
    entries = b"".join(struct.pack(">HHI4s", *tag) for tag in tags)
    return b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">H", len(tags)) + entries + bytes(4)


SIDEWAYS = (0x0112, 3, 1, b"\0\x06\0\0")
ODD = {
    "exposure as an offset": (0x8769, 4, 1, b"\xff\xff\xff\xff"),
    "a fraction that is none": (0x011A, 7, 4, b"abcd"),
    "a number that is a float": (0x0100, 12, 1, b"\0\0\0\x08"),
    "a text in the place of a date": (0x0132, 5, 1, b"\0\0\0\x08"),
    "a type that there is not": (0x010F, 99, 1, b"abcd"),
    "a count beyond the end": (0x010F, 2, 0xFFFFFFFF, b"\0\0\0\0"),
}
TOP = np.zeros((8, 8, 3), np.uint8)
TOP[:4] = 255


@pytest.mark.parametrize("tag", ODD.values(), ids=ODD)
@pytest.mark.filterwarnings("ignore")  # of Pillow, about the tag
def test_an_odd_tag_of_exif_does_not_end_a_build(tag):
    data = encoded(Image.fromarray(np.rot90(TOP)), exif=exif(SIDEWAYS, tag))
    assert np.array_equal(read(data), TOP)


@pytest.mark.parametrize("orientation", range(10))
def test_each_orientation_is_turned_as_pillow_turns_it(orientation):
    from PIL import ImageOps

    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8))
    picture.getexif()[0x0112] = orientation
    data = encoded(picture, exif=exif((0x0112, 3, 1, struct.pack(">HH", orientation, 0))))
    with Image.open(io.BytesIO(data)) as opened:
        assert np.array_equal(read(data), np.asarray(ImageOps.exif_transpose(opened)))


@pytest.mark.filterwarnings("ignore")  # of Pillow, about damaged tags
def test_no_fuzzed_exif_ends_in_anything_but_a_picture_or_one_line():
    notes = Image.Exif()
    notes.update({0x0112: 6, 0x010F: "camera", 0x011A: 72.0, 0x9003: "2020", 0x0100: 8})
    notes[0x8769] = {0x9000: b"0230", 0x829A: 0.5}
    data = encoded(Image.fromarray(TOP), "JPEG", exif=notes)
    start, random = data.index(b"Exif") + 6, np.random.default_rng(0)
    for changes in random.integers(1, 4, 1500):
        content = bytearray(data)
        for place in random.integers(start, start + len(notes.tobytes()), changes):
            content[place] = random.choice([0, 1, 2, 5, 7, 12, 255, random.integers(256)])
        try:
            assert read(bytes(content)).shape == (8, 8, 3)
        except UserError as error:
            assert str(error).startswith("some.png cannot be read")  # noqa: PT017
