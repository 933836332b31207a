"""Files that were made to harm are told in one line, and cost neither memory nor a crash."""

import os
import time

import pytest
import torch

from epcore import gpus
from epcore.checkpoint import Checkpoint
from epcore.errors import UserError
from epcore.plan.datasets import Pixels
from epcore.plan.load import parse_yaml, validate
from epcore.plan.models import Ratio

PIXELS = Pixels(processing="resize", filter="bilinear")


# -- config ----------------------------------------------------------------------------------------

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        "data_root: {{ root }}",
        "? [a, b]\n: 1",
        BOMB,
        "a: &a {b: *a}",
        "a: &a [*a]",
        f"seed: {'9' * 5000}",
        "a: " + "[" * 3000 + "]" * 3000,
        "a: " + "{b: " * 3000 + "}" * 3000,
    ],
    ids=["braces", "list as key", "bomb", "circle", "list circle", "digits", "lists", "mappings"],
)
def test_a_config_that_is_made_to_harm_is_told(text):
    begun = time.monotonic()
    with pytest.raises(UserError, match=r"^config\.yaml"):
        parse_yaml(text, "config.yaml")
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    "value", ["1e999999999", "1e3", "9" * 4000, "1/0", "-1/2", "0", "nan", "1/"]
)
def test_a_width_is_a_plain_ratio(value):
    with pytest.raises(UserError, match="scale: "):
        validate(Ratio, value, "scale")
    assert validate(Ratio, "1/4", "scale") == validate(Ratio, 0.25, "scale")


# -- checkpoints and leases ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int32, torch.uint8, torch.bool])
def test_weights_are_floating_point_numbers(project, told, dtype):
    path = project / "net.pt"
    content = torch.load(path, weights_only=True)
    name = next(iter(content["weights"]))
    content["weights"][name] = content["weights"][name].to(dtype)
    torch.save(content, path)
    with pytest.raises(UserError, match=f"are no floating-point numbers in {name}"):
        Checkpoint.load(path, told("embed").backbone)


def test_a_lease_follows_no_link_and_waits_for_no_pipe(tmp_path, monkeypatch):
    monkeypatch.setattr(gpus, "LEASES", tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("kept", encoding="utf-8")
    (tmp_path / "linked.lock").symlink_to(precious)
    os.mkfifo(tmp_path / "piped.lock")
    with pytest.raises(OSError, match="symbolic links"):
        gpus._lock("linked")
    begun = time.monotonic()
    os.close(gpus._lock("piped"))
    assert time.monotonic() - begun < 5
    assert precious.read_text(encoding="utf-8") == "kept"
