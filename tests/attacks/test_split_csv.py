"""A `split.csv`, or class folders, that lead elsewhere or hold names that cannot be told."""

import os

import numpy as np
import pytest
from PIL import Image

from epcore.commands import cli
from epcore.data.builders.folder import contents
from epcore.data.datasets import OwnData, RandomSplit
from epcore.data.sources import Sources
from epcore.data.store import write_store
from epcore.errors import UserError
from epcore.files import canonical_json

LINES = ["a.png,cat,base", "a.png,ant,val", "a.png,bee,novel"]


@pytest.fixture
def mine(tmp_path):
    """A data set, and beside it a picture that is none of its own."""
    for number, label in enumerate(("cat", "ant", "bee")):
        (tmp_path / "mine" / "images" / label).mkdir(parents=True)
        image = Image.fromarray(np.full((8, 8, 3), number, np.uint8))
        image.save(tmp_path / "mine" / "images" / label / "a.png")
    image.save(tmp_path / "secret.png")
    return tmp_path / "mine"


def dataset(mine, **settings):
    return OwnData(kind="folder", title="", path=str(mine), image_size=8, **settings)


def listed(mine, *lines):
    text = "\n".join(["filename,label,split", *LINES, *lines, ""])
    (mine / "split.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    return list(contents(dataset(mine), Sources({})).images)


def refused(message, function, *arguments):
    with pytest.raises(UserError, match=message) as caught:
        function(*arguments)
    assert "\n" not in str(caught.value)
    str(caught.value).encode()  # it can be printed


@pytest.mark.parametrize("name", ["ä b.png", "..a.png", "a..png", "...", "a\\b.png", "ſ\u202f.png"])
def test_odd_names_that_lead_nowhere_are_names(mine, name):
    (mine / "images" / "cat" / name).write_bytes((mine.parent / "secret.png").read_bytes())
    assert len(listed(mine, f"{name},cat,base")) == 4


@pytest.mark.parametrize("column", ["filename", "label"])
@pytest.mark.parametrize(
    "name",
    ["../../../secret.png", "..", ".", "./a.png", "../cat/a.png", "/etc/passwd", "a.png/", "x/y",
     "a\0.png", "a\x1b[2J.png", "\"a\nb.png\"", "a\x7f.png", "{secret}"],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_or_cannot_be_told_is_refused(mine, name, column):
    name = name.format(secret=mine.parent / "secret.png")
    line = f"{name},cat,base" if column == "filename" else f"a.png,{name},base"
    refused(rf"split\.csv, line 5: the {column} .* is no name of a file", listed, mine, line)


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_one_picture_in_two_splits_is_refused_also_by_another_name(mine, link):
    link(mine / "images" / "cat" / "a.png", mine / "images" / "bee" / "b.png")
    text = "\n".join(["filename,label,split", *LINES, "b.png,bee,novel", ""])
    (mine / "split.csv").write_text(text, encoding="utf-8")
    store = mine.parent / "packed"
    refused(
        r"cat/a\.png is also .*bee/b\.png", write_store, store, contents(dataset(mine), Sources({}))
    )


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_named_and_not_waited_for(mine, make):
    make(mine / "images" / "cat" / "b.png")
    refused(r"b\.png is no plain file", listed, mine, "b.png,cat,base")


def test_a_file_that_would_fill_the_memory_is_named_before_it_is_read(mine):
    with (mine / "images" / "cat" / "b.png").open("wb") as file:
        file.truncate(1 << 40)
    message = r"b\.png is no plain file of up to 268,435,456 bytes"
    refused(message, listed, mine, "b.png,cat,base")


@pytest.mark.parametrize("name", ["cat/\udcff.png", "cat/a\n.png", "\udce9t\udce9", "a\x1b"])
def test_names_on_the_disk_that_cannot_be_told_are_refused(mine, name):
    path = mine / "images" / name
    if path.suffix:
        path.write_bytes(b"")
    else:
        path.mkdir()
    split = RandomSplit(base=1, val=1, novel=1, seed=0)
    refused("is no name of a file", contents, dataset(mine, split=split), Sources({}))


def test_the_command_says_so_in_one_line(mine, capsys):
    (mine / "split.csv").write_text("filename,label,split\n../../../secret.png,cat,base\n")
    settings = {"kind": "folder", "title": "", "path": str(mine), "image_size": 8}
    config = canonical_json({"stage_version": 1, "dataset": settings})
    assert cli.main(["data", "--config", config, "--out", str(mine.parent / "packed")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"epcore: {mine / 'split.csv'}, line 2: the filename '../../../secret")
    assert said.count("\n") == 1
