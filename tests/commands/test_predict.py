"""`epcore predict`: folders of pictures in, a CSV and a page out."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from epcore.backbones.build import build_backbone
from epcore.backbones.checkpoint import Checkpoint
from epcore.backbones.config import BackboneConfig
from epcore.commands.cli import main

COLORS = {"blue sky": (40, 80, 230), "grass": (40, 200, 60), "brick": (200, 70, 40)}
CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Labeled pictures, unequal numbers of each class, new ones, and a network never trained."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)

    def paint(path, color):
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.clip(random.normal(color, 12, (24, 30, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(path)

    for number, (name, color) in enumerate(COLORS.items()):
        for image in range(number + 1):
            paint(Path("support", name, f"{image}.png"), color)
        for image in range(4):
            paint(Path("new", f"{image}-{name}.png"), color)
    torch.manual_seed(0)
    network = build_backbone("conv4").eval()
    backbone = BackboneConfig(architecture="conv4")
    Checkpoint(backbone, network.state_dict(), {}).save(Path("mine.pt"))


def run(*words, size=("--size", "28")):
    return main(
        ["predict", "--support", "support", "--queries", "new", "--weights", "mine.pt",
         "--backbone", "conv4", *size, "--settings", str(CONFIG), *words]
    )  # fmt: skip


@pytest.mark.parametrize("classifier", [None, "nearest-mean", "{name: ridge, regularization: 0.1}"])
def test_new_pictures_get_the_class_that_they_look_like(folders, capsys, classifier):
    assert run(*(["--classifier", classifier] if classifier else [])) == 0
    table = pd.read_csv("predictions.csv")
    assert list(table.columns) == ["file", "class", "probability"]
    assert table["file"].tolist() == sorted(map(str, Path("new").iterdir()))
    assert (table["class"] == table["file"].str.extract(r"-(.*)\.png")[0]).all()
    assert table["probability"].between(1 / 3, 1).all()
    assert "12 images in 3 classes, from 6 examples" in capsys.readouterr().out


def test_pictures_are_resized_as_in_the_checkpoints_training_unless_one_says_otherwise(folders):
    def predicted(*words):
        assert run("--out", "sized.csv", size=words) == 0
        return Path("sized.csv").read_bytes()

    assert predicted() == predicted("--size", "84") != predicted("--size", "28")
    Path("mine.meta.json").write_text('{"image_size": 28}', encoding="utf-8")
    assert predicted() == predicted("--size", "28") != predicted("--size", "84")


def test_the_page_shows_the_most_and_the_least_certain_pictures(folders):
    assert run("--out", "sorted.csv") == 0
    page = Path("sorted.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg;base64,") == 24
    assert not re.search(r"https?://|<script", page)
    table = pd.read_csv("sorted.csv")
    certain = table.loc[table["probability"].idxmax(), "file"]
    assert page.index("Most certain") < page.index(certain) < page.index("Least certain")
    for name in COLORS:
        assert re.search(rf'<th scope="row">{name}</th><td>4</td>', page)


@pytest.mark.parametrize(
    ("before", "words", "said"),
    [
        (None, ["--classifier", "tin"], "unknown entry of classifiers.yaml 'tin'; did you mean"),
        (None, ["--classifier", "simpleshot"], "takes the mean feature of the base images"),
        (None, ["--classifier", "baseline-plus-plus"], "as many support images of each class"),
        ("empty", [], "new has no pictures; put those there that have no class yet"),
        ("one class", [], "support has one class; put a folder for each class there"),
    ],
)
def test_what_cannot_be_predicted_is_told_in_one_line(folders, capsys, before, words, said):
    if before == "empty":
        for path in Path("new").iterdir():
            path.unlink()
    if before == "one class":
        for name in ("grass", "brick"):
            Path("support", name).rename(name)
    assert run(*words) == 2
    assert said in capsys.readouterr().err
    assert not Path("predictions.csv").exists()


def test_rows_of_a_file_without_a_label_are_predicted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    classes = np.array([0, 1, 2, 2, 1, 0, 2, 1, 0, 0])
    features = np.eye(3)[classes] + random.normal(0, 0.05, (10, 3))
    hidden = np.arange(10) > 5
    for labels in (np.where(hidden, -1, classes), np.where(hidden, "", classes.astype(str))):
        np.savez("mine.npz", features=features.astype(np.float32), labels=labels)
        assert main(["predict", "--features", "mine.npz", "--settings", str(CONFIG)]) == 0
        table = pd.read_csv("predictions.csv")
        assert table["row"].tolist() == [6, 7, 8, 9]
        assert table["class"].tolist() == [2, 1, 0, 0]
        assert "4 images in 3 classes, from 6 examples" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([0, 1, 2, 2], "every row has a label; label those to be predicted '' or, in numbers, -1"),
        ([0, 0, -1, -1], "mine.npz has fewer than two classes"),
    ],
)
def test_a_file_with_nothing_to_predict_is_told(tmp_path, monkeypatch, capsys, labels, said):
    monkeypatch.chdir(tmp_path)
    np.savez("mine.npz", features=np.eye(4, dtype=np.float32), labels=np.array(labels))
    assert main(["predict", "--features", "mine.npz", "--settings", str(CONFIG)]) == 2
    assert said in capsys.readouterr().err
