"""A damaged or foreign file is named, with what to do; it never becomes a number."""

import json
import shutil

import numpy as np
import pytest

from epcore.commands import cli
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.evaluation.embed import Features
from epcore.files import canonical_json

PROPAGATION = {
    "embedding": True,
    "classifier": "label-propagation",
    "part": "full",
    "embedding_alpha": 0.5,
    "label_alpha": 0.2,
    "bandwidth": "std",
    "normalize_labels": True,
    "query_logits": "log-scores",
}


def text(stage):
    return canonical_json(stage.model_dump(mode="json"))


@pytest.fixture(scope="module")
def whole(stage_config, toy, tmp_path_factory):
    """Everything that a pipeline leaves, once."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copytree(toy.data, folder / "toy")
    for name, split, seed in (("val", "val", 1), ("novel", "novel", 2)):
        config = {"stage_version": 2, "split": split, "way": 5, "shot": 2, "queries": 3}
        config |= {"labeled": None, "unlabeled": 0, "episodes": 30, "seed": seed}
        assert run("episodes", config, folder, data="toy", out=f"{name}.npz") == 0
    stage = json.loads(text(stage_config("pretrain", pretraining={"epochs": 1})))
    assert run("pretrain", stage, folder, data="toy", episodes="val.npz", out="net.pt") == 0
    return folder


def run(stage, config, folder, **paths):
    arguments = [stage, "--config", canonical_json(config)]
    for name, path in paths.items():
        arguments += [f"--{name}", str(folder / path)]
    return cli.main(arguments)


@pytest.fixture(scope="module")
def whole_embedded(whole, stage_config, tmp_path_factory):
    """And the features."""
    folder = shutil.copytree(whole, tmp_path_factory.mktemp("embedded") / "whole")
    assert embed(folder, stage_config) == 0
    return folder


@pytest.fixture
def embedded(whole_embedded, tmp_path):
    return shutil.copytree(whole_embedded, tmp_path / "work")


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "work")


def embed(folder, stage_config):
    config = json.loads(text(stage_config("embed")))
    paths = {"data": "toy", "weights": "net.pt", "out": "features.npz"}
    return run("embed", config, folder, **paths)


def evaluate(folder):
    config = {"stage_version": 2, "propagation": PROPAGATION}
    paths = {"features": "features.npz", "episodes": "novel.npz"}
    return run("evaluate", config, folder, **paths, out="scores.csv")


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


def flipped_at(place):
    def damage(content):
        position = int(len(content) * place)
        return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]

    return damage


DAMAGES = [truncated, empty, flipped, foreign]
NAMES = [damage.__name__ for damage in DAMAGES]


@pytest.mark.parametrize("damage", DAMAGES, ids=NAMES)
@pytest.mark.parametrize("with_meta", [True, False])
def test_embedding(folder, stage_config, capsys, damage, with_meta):
    """With its meta file, by the sha256 there; without, by the checksums inside."""
    path = folder / "net.pt"
    path.write_bytes(damage(path.read_bytes()))
    if not with_meta:
        path.with_suffix(".meta.json").unlink()
    assert embed(folder, stage_config) == 2
    complaint(capsys, path)
    assert not (folder / "features.npz").exists()


@pytest.mark.parametrize("damage", DAMAGES, ids=NAMES)
@pytest.mark.parametrize("with_meta", [True, False])
@pytest.mark.parametrize("file", ["features.npz", "novel.npz"])
def test_evaluation(embedded, capsys, file, damage, with_meta):
    folder = embedded
    path = folder / file
    path.write_bytes(damage(path.read_bytes()))
    if not with_meta:
        path.with_suffix(".meta.json").unlink()
    assert evaluate(folder) == 2
    complaint(capsys, path)
    assert not (folder / "scores.csv").exists()


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
def test_a_store(folder, stage_config, capsys, file, damage):
    path = folder / "toy" / file
    path.write_bytes(damage(path.read_bytes()))
    assert embed(folder, stage_config) == 2
    complaint(capsys, folder / "toy")


def test_a_flipped_bit_of_an_image(folder):
    path = folder / "toy" / "images.npy"
    path.write_bytes(flipped(path.read_bytes()))
    store = ImageStore.open(folder / "toy")
    with pytest.raises(UserError, match=r"image \d+ of images.npy has another checksum"):
        store.pixels(np.arange(len(store.labels)))


@pytest.mark.parametrize("place", np.linspace(0.02, 0.98, 25))
def test_a_flipped_bit_of_a_description_changes_no_number(folder, stage_config, place):
    """Names of classes may change by it; labels, splits and pixels may not."""
    before = ImageStore.open(folder / "toy")
    path = folder / "toy" / "store.json"
    path.write_bytes(flipped_at(place)(path.read_bytes()))
    try:
        after = ImageStore.open(folder / "toy")
    except UserError as error:
        assert str(folder / "toy") in str(error)  # noqa: PT017 - either is fine
        return
    assert np.array_equal(before.labels, after.labels)
    assert [c.split for c in before.classes] == [c.split for c in after.classes]


@pytest.mark.parametrize("place", np.linspace(0.01, 0.99, 25))
@pytest.mark.parametrize("file", ["net.pt", "novel.npz", "features.npz"])
def test_a_flipped_bit_anywhere_is_found_or_harmless_even_without_a_meta_file(
    embedded, stage_config, file, place
):
    """Between the arrays of an archive there is padding, in which a bit means nothing."""
    folder = embedded
    readers = {
        "net.pt": lambda: checkpoint(folder, stage_config),
        "novel.npz": lambda: vars(Episodes.load(folder / "novel.npz")),
        "features.npz": lambda: vars(Features.load(folder / "features.npz")),
    }
    before = readers[file]()
    (folder / file).write_bytes(flipped_at(place)((folder / file).read_bytes()))
    try:
        after = readers[file]()
    except UserError as error:
        assert str(folder / file) in str(error)  # noqa: PT017
        return
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert np.array_equal(array, after[name]), name


def checkpoint(folder, stage_config):
    from epcore.backbones.checkpoint import Checkpoint

    loaded = Checkpoint.load(folder / "net.pt", stage_config("embed").backbone)
    return {name: tensor.numpy() for name, tensor in loaded.weights.items()}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"made": 3}', '{"made": {"net.pt": 3}}', "\x00\x01"]
)
def test_a_damaged_meta_file(folder, stage_config, capsys, content):
    path = folder / "net.meta.json"
    path.write_text(content)
    assert embed(folder, stage_config) == 2
    complaint(capsys, folder / "net.pt" if "net.pt" in content else path)


def test_episodes_that_were_swapped_for_others(embedded, capsys):
    folder = embedded
    shutil.copy(folder / "val.npz", folder / "novel.npz")
    assert evaluate(folder) == 2
    complaint(capsys, folder / "novel.npz")


def complaint(capsys, path):
    """One line for people: which file, and the remedy."""
    message = capsys.readouterr().err
    lines = [line for line in message.splitlines() if line.startswith("epcore:")]
    assert len(lines) == 1, message
    assert "Traceback" not in message
    assert str(path) in lines[0], message
    assert "delete" in lines[0], message
