"""Files that were made to harm are told in one line, and cost neither memory nor a crash."""

import io
import os
import pickle
import struct
import time

import numpy as np
import pytest
import torch
from PIL import Image

from epcore import gpus
from epcore.checkpoint import Checkpoint
from epcore.data import pickles
from epcore.data.builders.folder import read_split
from epcore.data.pictures import decode
from epcore.errors import UserError
from epcore.plan.datasets import Pixels
from epcore.plan.load import parse_yaml, validate
from epcore.plan.models import Ratio

PIXELS = Pixels(processing="resize", filter="bilinear")


# -- pickles ---------------------------------------------------------------------------------------


def refused(content):
    with pytest.raises(UserError, match="is refused"):
        pickles.load(io.BytesIO(content), "file.pkl")


def test_an_array_is_filled_once():
    """BUILD twice: the first content is freed, and a view of it reads whatever comes there."""
    array = pickle.dumps(np.arange(4096), protocol=2)
    assert pickles.load(io.BytesIO(array), "file.pkl").sum() == 4096 * 4095 // 2
    assert array.endswith(b"q\x14b.")  # its state has the number 20
    refused(array[:-1] + b"h\x14b.")


@pytest.mark.parametrize(
    "content", [b"r\xff\xff\xff\xfe.", b"]r\xff\xff\xff\x7f.", b"]p4000000000\n."]
)
def test_nine_bytes_ask_for_no_gigabytes(content):
    begun = time.monotonic()
    refused(content)
    assert time.monotonic() - begun < 5


def test_an_array_is_made_of_bytes_alone():
    numbers = pickle.dumps(np.arange(5), protocol=5)
    assert pickles.load(io.BytesIO(numbers), "file.pkl").tolist() == [0, 1, 2, 3, 4]
    dtype = pickles._Dtype("i8")
    for content in (memoryview(b"12345678"), np.arange(1), "12345678"):
        with pytest.raises(pickle.UnpicklingError, match="an array out of"):
            pickles._frombuffer(content, dtype, (1,), "C")


# -- pictures --------------------------------------------------------------------------------------


def encoded(picture, kind, **more):
    buffer = io.BytesIO()
    picture.save(buffer, kind, **more)
    return buffer.getvalue()


def test_no_program_is_started_for_a_picture(monkeypatch):
    """Pillow would hand an EPS file to Ghostscript, whatever its name is."""
    started = []
    monkeypatch.setattr("subprocess.check_call", lambda *a, **k: started.append(a))
    monkeypatch.setattr("subprocess.Popen", lambda *a, **k: started.append(a))
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    with pytest.raises(UserError, match=r"a\.png cannot be read as an image \(no known format\)"):
        decode(eps, "a.png", 8, PIXELS)
    assert not started


def test_a_picture_of_few_bytes_takes_little_memory():
    bomb = encoded(Image.new("1", (12_000, 12_000)), "PNG")
    assert len(bomb) < 100_000
    with pytest.raises(UserError, match=r"bomb\.png .*12000 x 12000, more than 64 million pixels"):
        decode(bomb, "bomb.png", 8, PIXELS)


@pytest.mark.parametrize(
    "value",
    [struct.pack("<H", 99), b"\xff" * 40, b"II*\0" + b"\xff" * 30, b"MM\0*\0\0\0\x08\xff\xff"],
)
def test_malformed_exif_data_name_the_picture(value):
    picture = Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3))
    data = encoded(picture, "JPEG", exif=b"Exif\0\0" + value)
    try:
        assert decode(data, "photo.jpg", 8, PIXELS, upright=True).shape == (8, 8, 3)
    except UserError as error:
        assert "photo.jpg cannot be read as an image" in str(error)  # noqa: PT017 - either is well


# -- split.csv -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("../../secret.png", "cat"), ("/etc/hosts", "cat"), ("a.png", ".."), ("a.png", "../other"),
        ("sub/a.png", "cat"), ("a\\b.png", "cat"), (".", "cat"), ("a.png", "/tmp"),
        ("a\0.png", "cat"),
    ],
)  # fmt: skip
def test_split_csv_stays_in_its_folder(tmp_path, name, label):
    file = tmp_path / "split.csv"
    file.write_text(
        f"filename,label,split\nok.png,dog,base\n{name},{label},base\n", encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"split\.csv, line 3: "):
        read_split(file)


# -- config ----------------------------------------------------------------------------------------

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "data_root: {{ root }}",
        "? [a, b]\n: 1",
        BOMB,
        "a: &a {b: *a}",
        "a: &a [*a]",
        f"seed: {'9' * 5000}",
        "a: " + "[" * 3000 + "]" * 3000,
        "a: " + "{b: " * 3000 + "}" * 3000,
    ],
    ids=["braces", "list as key", "bomb", "circle", "list circle", "digits", "lists", "mappings"],
)
def test_a_config_that_is_made_to_harm_is_told(text):
    begun = time.monotonic()
    with pytest.raises(UserError, match=r"^config\.yaml"):
        parse_yaml(text, "config.yaml")
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    "value", ["1e999999999", "1e3", "9" * 4000, "1/0", "-1/2", "0", "nan", "1/"]
)
def test_a_width_is_a_plain_ratio(value):
    with pytest.raises(UserError, match="scale: "):
        validate(Ratio, value, "scale")
    assert validate(Ratio, "1/4", "scale") == validate(Ratio, 0.25, "scale")


# -- checkpoints and leases ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int32, torch.uint8, torch.bool])
def test_weights_are_floating_point_numbers(project, told, dtype):
    path = project / "net.pt"
    content = torch.load(path, weights_only=True)
    name = next(iter(content["weights"]))
    content["weights"][name] = content["weights"][name].to(dtype)
    torch.save(content, path)
    with pytest.raises(UserError, match=f"{name} of its weights holds no floating-point numbers"):
        Checkpoint.load(path, told("embed").backbone)


def test_a_lease_follows_no_link_and_waits_for_no_pipe(tmp_path, monkeypatch):
    monkeypatch.setattr(gpus, "LEASES", tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("kept", encoding="utf-8")
    (tmp_path / "linked.lock").symlink_to(precious)
    os.mkfifo(tmp_path / "piped.lock")
    with pytest.raises(OSError, match="symbolic links"):
        gpus._lock("linked")
    begun = time.monotonic()
    os.close(gpus._lock("piped"))
    assert time.monotonic() - begun < 5
    assert precious.read_text(encoding="utf-8") == "kept"
