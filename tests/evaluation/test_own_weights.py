"""Weights from elsewhere: the lines of docs/own-weights.md, as they stand there."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from figure_files import lines_of
from PIL import Image
from plans import command, plan_of

from epcore.backbones.build import build_backbone
from epcore.backbones.checkpoint import Checkpoint
from epcore.backbones.config import BackboneConfig
from epcore.commands import cli, options
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.evaluation.embed import Features
from epcore.settings import config_text

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RESULTS = Path("results/paper")


@pytest.fixture
def documented(toy, tmp_path, monkeypatch):
    """Commands of the page, in a folder that has what they name."""
    monkeypatch.chdir(tmp_path)
    Path("config").symlink_to(ROOT / "config")
    shutil.copytree(toy.data, RESULTS / "data/mini-imagenet")
    episodes = RESULTS / "episodes/mini-imagenet/5way-1shot.npz"
    episodes.parent.mkdir(parents=True)
    shutil.copy(toy.novel, episodes)
    photos = Path("photos")
    for name in range(5):
        (photos / str(name)).mkdir(parents=True)
        for number in range(20):
            pixels = np.full((30, 40, 3), 40 * name + number, dtype=np.uint8)
            Image.fromarray(pixels).save(photos / str(name) / f"{number}.png")
    page = (ROOT / "docs/own-weights.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    return [block.replace("\\\n", "").splitlines() for block in blocks], episodes


def test_the_documented_lines_embed_and_evaluate_them(documented, capsys):
    (of_folder, of_timm, of_checkpoint), episodes = documented
    theirs = build_backbone("resnet12")
    torch.save({f"encoder.{name}": w for name, w in theirs.state_dict().items()}, "theirs.pt")
    assert (len(of_folder), len(of_checkpoint)) == (3, 1)
    checkpoint = Path("results/demo/models/glyph-mini/conv4/epnet/s0/finetune-1shot.pt")
    checkpoint.parent.mkdir(parents=True)
    backbone = BackboneConfig(architecture="conv4")
    Checkpoint(backbone, build_backbone("conv4").state_dict(), {}).save(checkpoint)
    for line in (*of_folder, *of_checkpoint):
        program, *arguments = shlex.split(line)
        assert program == "epcore"
        fewer = ["--count", "10"] if arguments[0] == "classify" else []
        assert cli.main([*arguments, *fewer]) == 0
    assert "nearest-mean" in capsys.readouterr().out
    for line in of_timm[1:]:  # their weights come from a hub
        options.parser().parse_args(shlex.split(line)[1:])
    run = {"dataset": "mini-imagenet", "backbone": "resnet12", "recipe": "epnet"}
    embed = command(plan_of("paper"), "embed", checkpoint="pretrain", **run)
    assert cli.main([*embed, "--weights", "mine.pt", "--out", "mine-features.npz"]) == 0
    config = ["--config", config_text(plan_of("paper").runs.evaluate("resnet12", "epnet"))]
    files = ["--features", "mine-features.npz", "--episodes", str(episodes)]
    assert cli.main(["evaluate", *config, *files, "--out", "mine-scores.csv"]) == 0
    features = Features.load(Path("mine-features.npz"))
    images = ImageStore.open(RESULTS / "data/mini-imagenet").images[features.rows[:3]]
    with torch.no_grad():
        expected = theirs.eval()(torch.from_numpy(images).permute(0, 3, 1, 2) / 127.5 - 1)
    found = torch.from_numpy(features.values[:3])
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
    assert len(lines_of(Path("mine-scores.csv"))) == len(Episodes.load(episodes).images())
