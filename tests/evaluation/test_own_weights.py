"""Weights from elsewhere: the lines of docs/own-weights.md, as they stand there."""

import csv
import re
import shlex
import shutil
from pathlib import Path

import pytest
import torch

from epcore import cli
from epcore.backbones import build_backbone
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.evaluation.embed import Features

ROOT = Path(__file__).parents[2]
RESULTS = Path("results/paper")


@pytest.fixture
def documented(toy, tmp_path, monkeypatch):
    """Python and commands of the page, in a folder that has what they name."""
    monkeypatch.chdir(tmp_path)
    Path("config").symlink_to(ROOT / "config")
    shutil.copytree(toy.data, RESULTS / "data/mini-imagenet")
    episodes = RESULTS / "episodes/mini-imagenet/5way-1shot.npz"
    episodes.parent.mkdir(parents=True)
    shutil.copy(toy.novel, episodes)
    page = (ROOT / "docs/own-weights.md").read_text(encoding="utf-8")
    python, commands = (
        re.search(f"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("python", "bash")
    )
    return python, commands.replace("\\\n", "").splitlines(), episodes


def test_the_documented_lines_embed_and_evaluate_them(documented):
    python, commands, episodes = documented
    theirs = build_backbone("conv4")
    torch.save({f"module.{name}": w for name, w in theirs.state_dict().items()}, "theirs.pt")
    exec(python, {})
    assert len(commands) == 2
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "epcore"
        assert cli.main(arguments) == 0
    features = Features.load(Path("mine-features.npz"))
    images = ImageStore.open(RESULTS / "data/mini-imagenet").images[features.rows[:3]]
    with torch.no_grad():
        expected = theirs.eval()(torch.from_numpy(images).permute(0, 3, 1, 2) / 127.5 - 1)
    found = torch.from_numpy(features.values[:3])
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
    with Path("mine-scores.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(Episodes.load(episodes).images())
