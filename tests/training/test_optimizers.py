"""The optimizers against torch's own, which import torch's compiler."""

import subprocess
import sys

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

from epcore import optimizers

# Each kind unfused too: only such steps fail where gradients would be recorded of them.
SETTINGS = [
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 5e-4, "fused": True}),
    ("SGD", {"momentum": 0.9}),
    ("Adam", {"weight_decay": 5e-4}),
    ("Adam", {"fused": True}),
]


@pytest.mark.parametrize(("name", "settings"), SETTINGS)
def test_steps_are_those_of_torch_to_the_last_bit_also_from_a_saved_state(name, settings):
    targets = torch.randn(10, 8, generator=torch.Generator().manual_seed(0))
    ends = []
    for library in (optimizers, torch.optim):
        weight, state = torch.nn.Parameter(torch.ones(8)), None
        for number in range(2):
            optimizer = getattr(library, name)([weight], lr=0.1, **settings)
            schedule = CosineAnnealingLR(optimizer, 10)
            if state is not None:
                optimizer.load_state_dict(state[0])
                schedule.load_state_dict(state[1])
            for target in targets[5 * number : 5 * number + 5]:
                optimizer.zero_grad()
                (weight - target).square().sum().backward()
                optimizer.step()
                schedule.step()
            state = optimizer.state_dict(), schedule.state_dict()
        assert not weight.equal(torch.ones(8))
        ends.append((weight.detach(), state[0]["param_groups"], state[1]["last_epoch"]))
    (own, *own_state), (expected, *expected_state) = ends
    assert own.equal(expected)
    assert own_state == expected_state


PROGRAM = """
import sys
from pathlib import Path
from epcore.plan.stages.training import PretrainStage
from epcore.training.pretrain import run
stage, *files = map(Path, sys.argv[1:])
run(PretrainStage.model_validate_json(stage.read_text()), *files, require_gpu=False)
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.slow
def test_a_training_imports_no_compiler(stage_config, toy, tmp_path):
    stage, out = tmp_path / "stage.json", tmp_path / "pretrain.pt"
    stage.write_text(stage_config("pretrain").model_dump_json())
    command = [sys.executable, "-c", PROGRAM, stage, toy.data, toy.val, out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "False"
    assert out.stat().st_size > 0
