"""A full disk: a clear error, the previous file intact, and the work goes on once there is room."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import torch
from packing import pack

from epcore.backbones.checkpoint import Checkpoint, save_atomically
from epcore.commands import cli
from epcore.data.contents import ImageClass
from epcore.files import canonical_json, write_text


@pytest.fixture
def disk(tmp_path):
    """A real file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder, leave):
    """Takes all room but some bytes."""
    free = shutil.disk_usage(folder).free
    (folder / "ballast").write_bytes(b"\0" * (free - leave))


def make_room(folder):
    (folder / "ballast").unlink()


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "ballast")


@pytest.mark.parametrize("leave", [0, 50_000])
def test_a_checkpoint(disk, leave):
    path = disk / "net.pt"
    save_atomically(path, {"weights": torch.zeros(1000)})
    fill(disk, leave)
    with pytest.raises(OSError, match="No space left on device"):
        save_atomically(path, {"weights": torch.ones(200_000)})
    assert torch.equal(torch.load(path)["weights"], torch.zeros(1000))
    assert files(disk) == ["net.pt"]
    make_room(disk)
    save_atomically(path, {"weights": torch.ones(200_000)})
    assert torch.load(path)["weights"].sum() == 200_000


def test_a_csv(disk):
    path = disk / "scores.csv"
    write_text(path, "episode,accuracy\n0,0.5\n")
    fill(disk, 4096)
    with pytest.raises(OSError, match="No space left on device"):
        write_text(path, "episode,accuracy\n" + "1,0.25\n" * 100_000)
    assert path.read_text() == "episode,accuracy\n0,0.5\n"
    assert files(disk) == ["scores.csv"]


def test_a_store(disk):
    classes = [ImageClass(split, split) for split in ("base", "val", "novel")]
    images = np.random.default_rng(0).integers(0, 256, (60, 60, 60, 3), dtype=np.uint8)
    fill(disk, 100_000)
    with pytest.raises(OSError, match="No space left on device"):
        pack(disk / "mine", classes, np.repeat([0, 1, 2], 20), images, 60)
    assert files(disk / "mine") == []
    make_room(disk)
    store = pack(disk / "mine", classes, np.repeat([0, 1, 2], 20), images, 60)
    assert np.array_equal(store.pixels(np.arange(60)), images)


@pytest.mark.slow
def test_a_training_says_so_and_goes_on_once_there_is_room(
    disk, stage_config, toy, tmp_path, capsys
):
    stage = stage_config("pretrain", pretraining={"epochs": 3})
    config = canonical_json(stage.model_dump(mode="json"))
    inputs = ["--data", str(toy.data), "--episodes", str(toy.val)]

    def train(out):
        return cli.main(["pretrain", "--config", config, *inputs, "--out", str(out)])

    fill(disk, 20_000)
    assert train(disk / "net.pt") == 2
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert message.startswith("epcore: ")
    assert "No space left on device" in message
    assert "Traceback" not in message
    make_room(disk)
    assert train(disk / "net.pt") == 0
    assert train(tmp_path / "net.pt") == 0
    first, second = (Checkpoint.load(f / "net.pt", stage.backbone) for f in (disk, tmp_path))
    for name, tensor in first.weights.items():
        assert torch.equal(tensor, second.weights[name])
    assert json.loads((disk / "net.meta.json").read_text())["best"]
