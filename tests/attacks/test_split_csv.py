"""A `split.csv` that leads elsewhere or lists what is no picture."""

import os

import numpy as np
import pytest
from PIL import Image

from epcore.commands import cli
from epcore.data.builders.folder import contents
from epcore.data.datasets import OwnData
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


def dataset(mine):
    return OwnData(kind="folder", title="", path=str(mine), image_size=8)


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
    ["../../../secret.png", "..", ".", "../cat/a.png", "a.png/", "x/y", "{secret}"],
)
def test_a_name_that_leads_elsewhere_is_refused(mine, name, column):
    name = name.format(secret=mine.parent / "secret.png")
    line = f"{name},cat,base" if column == "filename" else f"a.png,{name},base"
    refused(rf"split\.csv, line 5: the {column} .* is no name in images/", listed, mine, line)


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_one_picture_in_two_splits_is_refused_also_by_another_name(mine, link):
    link(mine / "images" / "cat" / "a.png", mine / "images" / "bee" / "b.png")
    text = "\n".join(["filename,label,split", *LINES, "b.png,bee,novel", ""])
    (mine / "split.csv").write_text(text, encoding="utf-8")
    store = mine.parent / "packed"
    refused(
        r"cat/a\.png is also .*bee/b\.png",
        write_store,
        store,
        contents(dataset(mine), Sources({})),
        8,
    )


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_named_and_not_waited_for(mine, make):
    make(mine / "images" / "cat" / "b.png")
    refused(r"b\.png is no plain file", listed, mine, "b.png,cat,base")


def test_the_command_says_so_in_one_line(mine, capsys):
    (mine / "split.csv").write_text("filename,label,split\n../../../secret.png,cat,base\n")
    settings = {"kind": "folder", "title": "", "path": str(mine), "image_size": 8}
    config = canonical_json({"stage_version": 1, "dataset": settings})
    assert cli.main(["data", "--config", config, "--out", str(mine.parent / "packed")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"epcore: {mine / 'split.csv'}, line 2: the filename '../../../secret")
    assert said.count("\n") == 1
