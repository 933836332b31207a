"""A damaged or foreign file is named, with what to do; it never becomes a number."""

import shutil

import numpy as np
import pytest

from epcore.backbones.checkpoint import Checkpoint
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.evaluation.embed import Features


def truncated(content):
    return content[: len(content) // 2]


def empty(content):
    return b""


def flipped(content):
    """One bit, in the middle of the data."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :]


def foreign(content):
    return b"\x89PNG\r\n\x1a\n" + content[8:]


DAMAGES = [truncated, empty, flipped, foreign]
NAMES = [damage.__name__ for damage in DAMAGES]


@pytest.mark.parametrize("damage", DAMAGES, ids=NAMES)
@pytest.mark.parametrize("with_meta", [True, False])
def test_embedding(project, damage, with_meta):
    """With its meta file, by the sha256 there; without, by the checksums inside."""
    path = project / "net.pt"
    path.write_bytes(damage(path.read_bytes()))
    if not with_meta:
        path.with_suffix(".meta.json").unlink()
    assert project.embed(out="new.npz") == 2
    project.complaint(path, "delete")
    assert not (project / "new.npz").exists()


@pytest.mark.parametrize("damage", DAMAGES, ids=NAMES)
@pytest.mark.parametrize("with_meta", [True, False])
@pytest.mark.parametrize("file", ["features.npz", "novel.npz"])
def test_evaluation(project, file, damage, with_meta):
    path = project / file
    path.write_bytes(damage(path.read_bytes()))
    if not with_meta:
        path.with_suffix(".meta.json").unlink()
    assert project.evaluate() == 2
    project.complaint(path, "delete")
    assert not (project / "scores.csv").exists()


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        (file, damage)
        for file in ("images.npy", "labels.npy", "checksums.npy", "store.json")
        for damage in DAMAGES
        # A flipped bit of these two has a test of its own below.
        if damage is not flipped or file in ("labels.npy", "checksums.npy")
    ],
)
def test_a_store(project, file, damage):
    path = project / "toy" / file
    path.write_bytes(damage(path.read_bytes()))
    assert project.embed() == 2
    project.complaint(project / "toy", "delete")


def test_a_flipped_bit_of_an_image(project):
    path = project / "toy" / "images.npy"
    path.write_bytes(flipped(path.read_bytes()))
    store = ImageStore.open(project / "toy")
    with pytest.raises(UserError, match=r"image \d+ of images.npy has another checksum"):
        store.pixels(np.arange(len(store.labels)))


def after_each_flip(path, read):
    """What is read, or refused by the file's name, after one bit of a file was flipped."""
    content = path.read_bytes()
    for position in (np.linspace(0.01, 0.99, 25) * len(content)).astype(int):
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
        try:
            yield read()
        except UserError as error:
            assert str(path if path.suffix != ".json" else path.parent) in str(error)  # noqa: PT017


def test_a_flipped_bit_of_a_description_changes_no_number(project):
    """Names of classes may change by it; labels, splits and pixels may not."""
    folder = project / "toy"
    before = ImageStore.open(folder)
    for after in after_each_flip(folder / "store.json", lambda: ImageStore.open(folder)):
        assert np.array_equal(before.labels, after.labels)
        assert [c.split for c in before.classes] == [c.split for c in after.classes]


@pytest.mark.parametrize("file", ["net.pt", "novel.npz", "features.npz"])
def test_a_flipped_bit_anywhere_is_found_or_harmless_even_without_a_meta_file(
    project, stage_config, file
):
    """Between the arrays of an archive there is padding, in which a bit means nothing."""
    backbone = stage_config("embed").backbone
    read = {
        "net.pt": lambda path: Checkpoint.load(path, backbone).weights,
        "novel.npz": lambda path: vars(Episodes.load(path)),
        "features.npz": lambda path: vars(Features.load(path)),
    }[file]
    before = read(project / file)
    for after in after_each_flip(project / file, lambda: read(project / file)):
        assert before.keys() == after.keys()
        for name, array in before.items():
            assert np.array_equal(array, after[name]), name


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"made": 3}', '{"made": {"net.pt": 3}}', "\x00\x01"]
)
def test_a_damaged_meta_file(project, content):
    path = project / "net.meta.json"
    path.write_text(content)
    assert project.embed() == 2
    project.complaint(project / "net.pt" if "net.pt" in content else path, "delete")


def test_episodes_that_were_swapped_for_others(project):
    shutil.copy(project / "val.npz", project / "novel.npz")
    assert project.evaluate() == 2
    project.complaint(project / "novel.npz", "delete")
