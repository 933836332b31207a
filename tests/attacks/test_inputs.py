"""Checkpoints of other numbers than weights."""

import pytest
import torch

from epcore.backbones.checkpoint import Checkpoint
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
