"""Weights and images of others: checkpoints out of anyone's state_dict, features of a folder."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from plans import plan_of
from safetensors.torch import save_file

from epcore.backbones.checkpoint import Checkpoint, build
from epcore.commands.cli import main

CONFIG = Path(__file__).parents[2] / "config"
HERE = ("--settings", str(CONFIG), "--scale", "demo")


@pytest.fixture
def settings():
    return plan_of("demo").registry.backbone("conv4")


@pytest.fixture
def theirs(settings, tmp_path, monkeypatch):
    """The weights of a network, with random statistics of BatchNorm."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    network = build(settings)
    for tensor in network.state_dict().values():
        if tensor.is_floating_point():
            tensor.uniform_(0.1, 0.9)
    return network.state_dict()


def imported(content, *words, backbone="conv4"):
    torch.save(content, "theirs.pt")
    arguments = ["theirs.pt", "--backbone", backbone, "--out", "mine.pt", *words, *HERE]
    return main(["import-weights", *arguments])


def told(capsys):
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("prefix", "holder"),
    [("", None), ("module.", "state_dict"), ("_orig_mod.module.", "anything"),
     ("encoder.", None), ("encoder.", "anything")],
)  # fmt: skip
def test_weights_arrive_as_they_were(theirs, settings, capsys, prefix, holder):
    content = {f"{prefix}{name}": tensor for name, tensor in theirs.items()}
    content |= {f"{prefix}fc.weight": torch.ones(3, 4)}
    words = ["--map", "encoder."] if prefix == "encoder." else []
    words = [words[0], f"{words[1]}="] if words else []
    assert imported({holder: content, "epoch": 3} if holder else content, *words) == 0
    found = Checkpoint.load(Path("mine.pt"), settings).weights
    assert found.keys() == theirs.keys()
    assert all(torch.equal(found[name], theirs[name]) for name in theirs)
    assert "left out, because the network has none of these names: fc.weight" in (
        capsys.readouterr().out
    )


def test_weights_of_a_safetensors_file_arrive_as_they_were(theirs, settings):
    save_file(dict(theirs), "theirs.safetensors")
    words = ["theirs.safetensors", "--backbone", "conv4", "--out", "mine.pt", *HERE]
    assert main(["import-weights", *words]) == 0
    found = Checkpoint.load(Path("mine.pt"), settings).weights
    assert all(torch.equal(found[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("left", [0, 7, 100])
def test_a_damaged_safetensors_file_is_told_in_one_line(theirs, capsys, left):
    save_file(dict(theirs), "theirs.safetensors")
    Path("theirs.safetensors").write_bytes(Path("theirs.safetensors").read_bytes()[:left])
    words = ["theirs.safetensors", "--backbone", "conv4", "--out", "mine.pt", *HERE]
    assert main(["import-weights", *words]) == 2
    assert "cannot be read as tensors" in told(capsys)


def optimizer_of(weights):
    """The state of Adam after a step, as `state_dict()` of an optimizer has it."""
    parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(3)]
    optimizer = torch.optim.Adam(parameters)
    sum(parameter.sum() for parameter in parameters).backward()
    optimizer.step()
    return optimizer.state_dict()


NESTED = {
    "state": lambda w: {"epoch": 3, "state": w},
    "deep": lambda w: {"epoch": 3, "loss": torch.ones(()), "run": {"model": {"state": w}}},
    "optimizer": lambda w: {"net": w, "optimizer": optimizer_of(w), "scheduler": {"last": [0.1]}},
}


@pytest.mark.parametrize("layout", NESTED)
def test_the_one_mapping_of_names_to_tensors_is_found_however_deep(theirs, settings, layout):
    assert imported(NESTED[layout](theirs)) == 0
    found = Checkpoint.load(Path("mine.pt"), settings).weights
    assert all(torch.equal(found[name], theirs[name]) for name in theirs)


def test_of_several_mappings_the_option_picks_one(theirs, settings, capsys):
    zeros = {name: torch.zeros_like(tensor) for name, tensor in theirs.items()}
    content = {"ema": zeros, "run": {"model": theirs}}
    assert imported(content) == 2
    count = len(theirs)
    assert told(capsys) == (
        "epcore: theirs.pt holds several mappings of names to tensors: "
        f"ema ({count}), run.model ({count}); say which with --key"
    )
    assert imported(content, "--key", "model") == 2
    assert "--key model: theirs.pt has no weights there, but in ema (" in told(capsys)
    assert imported(content, "--key", "run.model") == 0
    found = Checkpoint.load(Path("mine.pt"), settings).weights
    assert all(torch.equal(found[name], theirs[name]) for name in theirs)


def test_the_count_of_batches_may_lack_and_half_precision_is_widened(theirs, settings):
    content = {name: tensor.half() for name, tensor in theirs.items() if tensor.is_floating_point()}
    assert len(content) < len(theirs)
    assert imported(content) == 0
    found = Checkpoint.load(Path("mine.pt"), settings).weights
    for name, tensor in content.items():
        assert found[name].dtype == torch.float32
        assert torch.equal(found[name], tensor.float())


def without(weights, part):
    return {name: tensor for name, tensor in weights.items() if part not in name}


MISTAKES = {
    "other names": (lambda w: {f"net.{n}": t for n, t in w.items()}, [], "--map OLD=NEW"),
    "a missing layer": (lambda w: without(w, "2."), [], "no other weights to rename"),
    "other widths": (
        lambda w: {n: torch.cat([t, t]) if t.ndim == 4 else t for n, t in w.items()},
        [],
        "has shape .* needs .*choose another --backbone",
    ),
    "numbers for tensors": (
        lambda w: dict.fromkeys(w, 3),
        [],
        r"has no mapping of names to tensors; save the",
    ),
    "infinite weights": (lambda w: {n: t / 0 for n, t in w.items()}, [], "are not finite"),
    "a map without a sign": (dict, ["--map", "encoder."], "expected OLD=NEW"),
    "a map that fits nothing": (dict, ["--map", "nope=x"], "no name begins with 'nope'"),
    "a whole network": (lambda w: torch.nn.Linear(1, 1), [], r"save the network's state_dict\(\)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_does_not_fit_is_one_line_and_nothing_is_written(theirs, capsys, mistake):
    change, words, expected = MISTAKES[mistake]
    assert imported(change(theirs), *words) == 2
    assert re.search(expected, told(capsys))
    assert not Path("mine.pt").exists()


def test_two_names_that_become_one_are_told(theirs, capsys):
    name = next(iter(theirs))
    assert imported({**theirs, f"old.{name}": theirs[name]}, "--map", "old.=") == 2
    assert f"makes two weights {name!r}" in told(capsys)


def test_a_missing_file_and_a_misspelled_backbone_are_told(theirs, capsys):
    assert main(["import-weights", "no.pt", "--backbone", "conv4", "--out", "m.pt", *HERE]) == 2
    assert "no.pt does not exist; correct the name" in told(capsys)
    assert imported(theirs, backbone="conv5") == 2
    assert "did you mean 'conv4'" in told(capsys)


# -- images ----------------------------------------------------------------------------------------


@pytest.fixture
def photos(theirs):
    """Six classes of 20 pictures of 40 pixels, each class of a color of its own."""
    assert imported(theirs) == 0
    random = np.random.default_rng(0)
    for name in range(6):
        folder = Path("photos") / f"class {name}"
        folder.mkdir(parents=True)
        for number in range(20):
            pixels = 40 * name + random.integers(0, 30, (40, 40, 3))
            Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number:02}.png")
    return Path("photos")


def embedded(*words):
    weights = ["--weights", "mine.pt", "--backbone", "conv4", "--size", "28"]
    return main(["embed-folder", "photos", *weights, "--out", "mine.npz", *words, *HERE])


@torch.no_grad()
def test_features_are_those_of_the_network_on_the_resized_picture(photos, theirs, settings):
    assert embedded() == 0
    found = np.load("mine.npz")
    assert found["features"].shape == (120, 64)
    assert found["labels"].tolist() == [f"class {n}" for n in range(6) for _ in range(20)]
    network = build(settings).eval()
    network.load_state_dict(theirs)
    for place in (0, 57, 119):
        path = photos / f"class {place // 20}" / f"{place % 20:02}.png"
        small = Image.open(path).resize((28, 28), Image.Resampling.BILINEAR)
        pixels = torch.from_numpy(np.asarray(small, dtype=np.float32)).permute(2, 0, 1)[None]
        expected = network(pixels / 255 * 2 - 1)[0].numpy()
        scale = np.abs(expected).max()
        # The scale computes in bfloat16, which has 8 bits.
        assert np.abs(found["features"][place] - expected).max() < 0.03 * scale


def test_classify_takes_them(photos, capsys):
    assert embedded() == 0
    words = ["--classifier", "nearest-mean", "--count", "20", "--settings", str(CONFIG)]
    assert main(["classify", "--features", "mine.npz", *words]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("nearest-mean")
    assert float(line.split()[1]) > 60


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("photos/note.txt", "x", "is no class folder"),
        ("photos/class 0/note.txt", "x", "cannot be read as an image"),
    ],
)
def test_what_is_no_picture_is_told(photos, capsys, name, text, said):
    Path(name).write_text(text)
    capsys.readouterr()
    assert embedded() == 2
    assert said in capsys.readouterr().err
    assert not Path("mine.npz").exists()


def test_a_size_that_leaves_nothing_is_told(photos, capsys):
    capsys.readouterr()
    assert embedded("--size", "15") == 2
    assert "--size 15: too few pixels" in told(capsys)
