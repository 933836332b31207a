"""Checkpoints of other numbers than weights, and leases of GPUs that are no plain files."""

import os
import time

import pytest
import torch

from epcore import gpus
from epcore.checkpoint import Checkpoint
from epcore.errors import UserError


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int32, torch.uint8, torch.bool])
def test_weights_are_floating_point_numbers(project, stage_config, dtype):
    path = project / "net.pt"
    content = torch.load(path, weights_only=True)
    name = next(iter(content["weights"]))
    content["weights"][name] = content["weights"][name].to(dtype)
    torch.save(content, path)
    with pytest.raises(UserError, match=f"are no floating-point numbers in {name}"):
        Checkpoint.load(path, stage_config("embed").backbone)


def test_a_lease_follows_no_link_and_waits_for_no_pipe(tmp_path, monkeypatch):
    monkeypatch.setattr(gpus, "LEASES", tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("kept", encoding="utf-8")
    (tmp_path / "linked.lock").symlink_to(precious)
    os.mkfifo(tmp_path / "piped.lock")
    with pytest.raises(UserError, match=r"linked\.lock: .*symbolic links; have it removed"):
        gpus._lock("linked")
    begun = time.monotonic()
    with pytest.raises(UserError, match=r"piped\.lock: it is no plain file; have it removed"):
        gpus._lock("piped")
    assert time.monotonic() - begun < 5
    assert precious.read_text(encoding="utf-8") == "kept"
