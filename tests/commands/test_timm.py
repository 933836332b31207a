"""Networks of timm as feature extractors, with random weights from a file: no network is asked."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import epcore.vision  # noqa: F401  # timm imports torchvision
from epcore.commands.cli import main

timm = pytest.importorskip("timm")

CONFIG = Path(__file__).parents[2] / "config"
NAME = "test_vit"  # the smallest of its kind, made for tests


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Pictures of two classes, of several sizes and modes, and weights with a head of 1000."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    random = np.random.default_rng(0)
    for number, (name, mode) in enumerate([("a", "RGB"), ("a", "L"), ("b", "RGBA"), ("b", "RGB")]):
        Path("images", name).mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 256, (90 + 30 * number, 130, 4), dtype=np.uint8)
        picture = Image.fromarray(pixels, "RGBA").convert(mode)
        picture.save(Path("images", name, f"{number}.png"))
    torch.manual_seed(0)
    torch.save(timm.create_model(NAME).state_dict(), "weights.pth")


def embed(*words):
    return main(
        ["embed-folder", "images", "--backbone", f"timm:{NAME}", "--out", "found.npz",
         "--settings", str(CONFIG), *words]
    )  # fmt: skip


def test_features_are_those_of_the_model_behind_its_own_transform(pictures):
    assert embed("--weights", "weights.pth", "--batch", "3") == 0
    with np.load("found.npz") as found:
        features, labels = found["features"], found["labels"]
    assert labels.tolist() == ["a", "a", "b", "b"]
    model = timm.create_model(NAME).eval()
    model.load_state_dict(torch.load("weights.pth"))
    # The model's card: the shorter side to 168 pixels, the middle 160 of them, from -1 to 1.
    for path, found in zip(sorted(Path("images").glob("*/*")), features, strict=True):
        picture = Image.open(path)
        if picture.mode == "RGBA":
            picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
        picture = picture.convert("RGB")
        width, height = (168 * side // min(picture.size) for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BICUBIC)
        left, top = (round((side - 160) / 2) for side in (width, height))
        pixels = np.asarray(picture.crop((left, top, left + 160, top + 160)))
        image = torch.from_numpy(pixels / 127.5 - 1).float().permute(2, 0, 1)[None]
        with torch.no_grad():
            expected = model.forward_head(model.forward_features(image), pre_logits=True)
        assert np.allclose(found, expected[0].numpy(), atol=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--backbone", "timm:test_vitt"], "timm knows no test_vitt; did you mean test_vit,"),
        (["--backbone", "timm:zzzzzz"], "timm knows no zzzzzz; timm.list_models() has all"),
        (["--backbone", "timm:resnet18.mine"], "no such weights of resnet18; it has resnet18."),
        (["--backbone", "timm:vit_wee_patch16_reg1_gap_256"], "no weights from other.pth"),
        (["--weights", "nowhere.pth"], "file of weights nowhere.pth does not exist"),
        (["--weights", "broken.pth"], "no weights from broken.pth ("),
        (["--weights", "other.pth"], "no weights from other.pth (7"),
        ([], "no weights from timm's hub ("),
    ],
)
def test_what_cannot_be_had_is_told_in_one_line(pictures, capsys, monkeypatch, words, said):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_CACHE", "empty")
    Path("broken.pth").write_bytes(b"no weights")
    torch.save(timm.create_model("test_resnet").state_dict(), "other.pth")
    given = words if "--weights" in words or not words else [*words, "--weights", "other.pth"]
    assert embed(*given) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("epcore:") == 1
    assert "Traceback" not in error
    assert not Path("found.npz").exists()
