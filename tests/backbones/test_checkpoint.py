"""Checkpoints: what is saved comes back, and nothing else is taken for one."""

from fractions import Fraction

import pytest
import torch

from epcore.backbones.checkpoint import Checkpoint, build, load_backbone, save_atomically, state_of
from epcore.backbones.config import BackboneConfig
from epcore.errors import UserError

NARROW = BackboneConfig(architecture="conv4", width=Fraction(1, 8))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "finetune-1shot.pt"
    backbone = build(NARROW)
    head = torch.nn.Linear(backbone.feature_size, 6)
    checkpoint = Checkpoint(NARROW, state_of(backbone), state_of(head))
    checkpoint.save(path)
    return path, checkpoint


def complaint(path, expected=NARROW):
    with pytest.raises(UserError) as caught:
        Checkpoint.load(path, expected)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert str(path) in message
    return message


def test_a_checkpoint_comes_back_as_it_was_saved(saved):
    path, checkpoint = saved
    loaded = Checkpoint.load(path, NARROW)
    assert loaded.backbone == NARROW
    for part in ("weights", "class_head"):
        before, after = getattr(checkpoint, part), getattr(loaded, part)
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)


def test_of_a_whole_model_the_backbone_and_the_class_head_are_kept_in_their_order(saved):
    _, checkpoint = saved
    parts = {"backbone.": checkpoint.weights, "rotation_head.": checkpoint.class_head}
    parts["class_head."] = checkpoint.class_head
    whole = {prefix + name: value for prefix, part in parts.items() for name, value in part.items()}
    found = Checkpoint.of(NARROW, whole)
    assert list(found.weights) == list(checkpoint.weights)
    assert list(found.class_head) == list(checkpoint.class_head)
    for name, value in (found.weights | found.class_head).items():
        assert value is (checkpoint.weights | checkpoint.class_head)[name]


def test_a_loaded_backbone_is_the_saved_one_in_eval_mode(saved):
    path, checkpoint = saved
    expected = build(NARROW)
    expected.load_state_dict(checkpoint.weights)
    expected.eval()
    images = torch.randn(3, 3, 16, 16)
    loaded = load_backbone(path, NARROW, torch.device("cpu"))
    assert not loaded.training
    torch.testing.assert_close(loaded(images), expected(images))


@pytest.mark.parametrize(
    ("other", "shown", "remedy"),
    [
        (
            BackboneConfig(architecture="conv4", width=Fraction(1, 4)),
            "conv4 of width 1/4 and depth 1",
            "give the --scale that it is of or, if the workflow made it, delete it and run",
        ),
        (
            BackboneConfig(architecture="wide-resnet", width=Fraction(1, 8), depth=Fraction(1, 4)),
            "wide-resnet of width 1/8 and depth 1/4",
            "give --backbone of conv4, or another checkpoint",
        ),
    ],
)
def test_a_checkpoint_of_another_backbone_is_refused_naming_both(saved, other, shown, remedy):
    message = complaint(saved[0], other)
    assert f"holds conv4 of width 1/8 and depth 1, but {shown} is asked for; {remedy}" in message


@pytest.mark.parametrize("content", [[1], {"weights": {}}, {"format": "of another program"}])
def test_another_programs_torch_file_is_told_as_such(tmp_path, content):
    path = tmp_path / "foreign.pt"
    torch.save(content, path)
    assert "is not a checkpoint of this program" in complaint(path)


def changed(path, **parts):
    """Saves the checkpoint with other parts, left out where they are None."""
    content = torch.load(path, weights_only=True) | parts
    torch.save({name: part for name, part in content.items() if part is not None}, path)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"backbone": None}, "holds no backbone that this program has (None)"),
        ({"backbone": "conv4"}, "holds no backbone that this program has ('conv4')"),
        (
            {"backbone": {"architecture": "resnet50"}},
            "holds no backbone that this program has ({'architecture': 'resnet50'})",
        ),
        ({"weights": None}, "its weights are no tensors by name, but None"),
        ({"weights": {"stem": [1.0]}}, "its weights are no tensors by name, but {'stem': [1.0]}"),
        ({"weights": {1: torch.ones(1)}}, "its weights are no tensors by name"),
        ({"class_head": [2]}, "its class_head are no tensors by name, but [2]"),
    ],
)
def test_a_checkpoint_of_the_right_format_with_other_parts_is_refused(saved, parts, said):
    changed(saved[0], **parts)
    message = complaint(saved[0])
    assert said in message
    assert "delete it and run the same command again to train it anew" in message
    assert "weights from elsewhere see docs/own-weights.md" in message


def first_removed(weights):
    return dict(list(weights.items())[1:])


def of_a_parallel_module(weights):
    return {f"module.{name}": tensor for name, tensor in weights.items()}


def of_twice_the_width(weights):
    return state_of(build(BackboneConfig(architecture="conv4", width=Fraction(1, 4))))


def of_another_architecture(weights):
    return state_of(build(BackboneConfig(architecture="resnet12", width=Fraction(1, 8))))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (first_removed, 'Missing key(s) in state_dict: "'),
        (of_a_parallel_module, 'Unexpected key(s) in state_dict: "module.'),
        (of_twice_the_width, "size mismatch for "),
        (of_another_architecture, "Missing key(s) in state_dict"),
    ],
)
def test_weights_that_do_not_fit_their_backbone_are_refused(saved, change, said):
    path, checkpoint = saved
    changed(path, weights=change(checkpoint.weights))
    with pytest.raises(UserError) as caught:
        load_backbone(path, NARROW, torch.device("cpu"))
    message = str(caught.value)
    start = f"checkpoint {path}: its weights do not fit conv4 of width 1/8 and depth 1 ("
    assert message.startswith(start)
    assert said in message
    assert len(message.splitlines()) == 1
    assert len(message) - len(str(path)) < 700
    assert "delete it and run the same command again" in message


@pytest.mark.parametrize("class_head", [None, {}])
def test_a_class_head_is_not_asked_of_weights_that_only_embed(saved, class_head):
    changed(saved[0], class_head=class_head)
    loaded = load_backbone(saved[0], NARROW, torch.device("cpu")).state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in saved[1].weights.items())


def test_a_pickled_module_is_told_as_foreign_without_advice_to_trust_it(tmp_path):
    path = tmp_path / "foreign.pt"
    torch.save(torch.nn.Linear(2, 3), path)
    message = complaint(path)
    assert "is damaged or foreign (it holds more than tensors and plain values)" in message


class Harmful:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_a_checkpoint_that_holds_code_is_refused_and_the_code_does_not_run(tmp_path):
    path, trace = tmp_path / "harmful.pt", tmp_path / "trace"
    torch.save({"format": Harmful(str(trace))}, path)
    assert "is damaged" in complaint(path)
    assert not trace.exists()


def test_a_missing_checkpoint_is_told_as_missing(tmp_path):
    assert "does not exist; train it first" in complaint(tmp_path / "none.pt")


def test_a_save_that_fails_leaves_the_old_file_and_nothing_beside_it(saved):
    path, _ = saved
    before = path.read_bytes()
    with pytest.raises(Exception, match=r"pickle|local object"):  # by Python's version
        save_atomically(path, {"weights": torch.ones(10_000), "cannot be pickled": lambda: None})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_state_is_a_copy_in_the_usual_memory_order():
    layer = torch.nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
    state = state_of(layer)
    before = state["weight"].clone()
    with torch.no_grad():
        layer.weight.zero_()
    assert torch.equal(state["weight"], before)
    assert state["weight"].is_contiguous()
