"""Checkpoints that are whole, hold tensors alone, and are no weights."""

import pytest
import torch

from epcore.backbones.checkpoint import Checkpoint, save_atomically
from epcore.errors import UserError
from epcore.imagenet_fs.build import FORMAT, load_generators, read_head


@pytest.fixture
def loaded(project, stage_config):
    """The message for a checkpoint with one tensor changed."""

    def load(part, name, change):
        content = torch.load(project / "net.pt", weights_only=True)
        content[part][name] = change(content[part][name])
        path = project / "own.pt"
        torch.save(content, path)
        with pytest.raises(UserError) as caught:
            Checkpoint.load(path, stage_config("embed").backbone)
        assert "\n" not in str(caught.value)
        assert "see docs/own-weights.md" in str(caught.value)
        return str(caught.value)

    return load


OTHERS = [
    torch.complex64, torch.complex128, torch.int8, torch.int64, torch.uint8, torch.bool,
    torch.float8_e4m3fn,
]  # fmt: skip


@pytest.mark.parametrize("dtype", OTHERS, ids=str)
@pytest.mark.parametrize(
    ("part", "name"), [("weights", "blocks.0.0.weight"), ("class_head", "weight")]
)
def test_numbers_of_other_kinds_are_not_converted(loaded, part, name, dtype):
    """torch itself would drop what is imaginary, and round."""
    message = loaded(part, name, lambda tensor: tensor.to(dtype))
    assert f"its {part} are no floating-point numbers in {name}, but {dtype}" in message


def test_the_only_integer_is_a_number_of_batches(loaded):
    message = loaded("class_head", "bias", lambda tensor: torch.tensor(5))
    assert "its class_head are no floating-point numbers in bias, but torch.int64" in message


@pytest.mark.parametrize(
    "change",
    [
        lambda tensor: torch.zeros(1).expand(1 << 40),
        lambda tensor: torch.zeros(1).as_strided((1 << 20, 1 << 20), (0, 0)),
        lambda tensor: tensor.flatten(1).to_sparse(),
        lambda tensor: torch.empty(1 << 40, device="meta"),
    ],
    ids=["a terabyte of one number", "rows of one number", "sparse", "no numbers"],
)
def test_few_bytes_that_claim_to_be_many_weights_are_refused_before_they_are_read(loaded, change):
    message = loaded("class_head", "weight", change)
    assert "its class_head are not stored number by number in weight" in message


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_floating_point_numbers_of_other_sizes_are_weights(project, stage_config, dtype):
    backbone = stage_config("embed").backbone
    content = torch.load(project / "net.pt", weights_only=True)
    content["weights"]["blocks.0.0.weight"] = content["weights"]["blocks.0.0.weight"].to(dtype)
    torch.save(content, project / "own.pt")
    assert Checkpoint.load(project / "own.pt", backbone).backbone == backbone


BROKEN = {
    "complex": torch.ones(2, dtype=torch.complex64),
    "integers": torch.ones(2, dtype=torch.int32),
    "not finite": torch.tensor([1.0, torch.nan]),
    "no tensor": [1.0, 2.0],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_classifiers_and_generators_of_imagenet_fs_hold_weights(tmp_path, kind):
    path = tmp_path / "some.pt"
    head = {"weight": BROKEN[kind], "scale": torch.tensor(10.0)}
    save_atomically(path, {"class_head": head})
    with pytest.raises(UserError, match=r"some\.pt: the numbers of its cosine classifier are no"):
        read_head(path)
    content = {"format": FORMAT, "kind": "wdae-gnn", "states": {1: {"weight": BROKEN[kind]}}}
    save_atomically(path, content)
    with pytest.raises(UserError, match=r"some\.pt: its weights are no"):
        load_generators(path, "wdae-gnn")


@pytest.mark.parametrize("content", [{}, {"kind": "wdae-gnn"}, {"kind": "wdae-gnn", "states": 3}])
def test_generators_without_weights_are_told(tmp_path, content):
    save_atomically(tmp_path / "some.pt", {"format": FORMAT, **content})
    with pytest.raises(UserError, match=r"some\.pt.* (None, not|are missing)"):
        load_generators(tmp_path / "some.pt", "wdae-gnn")
