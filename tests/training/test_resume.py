"""A finished checkpoint that is lost costs no training; once nothing can delete it, no disk."""

import os
from pathlib import Path

import pytest

from epcore.runtime.resume import discard_old_states
from epcore.training import pretrain
from epcore.training.loop import _Training

OUTPUTS = ("pretrain.pt", "pretrain.csv")
CHECKPOINT = "models/data/conv4/epnet/s0/pretrain.pt"


@pytest.fixture
def pretrained(stage_config, toy, tmp_path):
    """Trains, or goes on: the checkpoint, and the folder of its states."""

    def run(**changes):
        out = tmp_path / "pretrain.pt"
        pretrain.run(stage_config("pretrain", **changes), toy.data, toy.val, out, require_gpu=False)
        return out, tmp_path / "pretrain.state"

    return run


@pytest.fixture
def saved(tmp_path):
    """Writes a file below a folder of results that was last changed at a time."""

    def write(name, time):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (time, time))
        return path

    return write


def test_a_lost_checkpoint_is_made_again_without_training(pretrained, monkeypatch):
    out, states = pretrained()
    before = {name: (out.parent / name).read_bytes() for name in OUTPUTS}
    assert [path.suffix for path in states.iterdir()] == [".pt"]
    for path in out.parent.glob("pretrain.*"):
        if path.is_file():
            path.unlink()
    monkeypatch.setattr(_Training, "_train", lambda *arguments: pytest.fail("it trained again"))
    pretrained()
    assert {name: (out.parent / name).read_bytes() for name in OUTPUTS} == before


def test_the_states_of_finished_trainings_are_discarded_whatever_their_config(pretrained):
    pretrained(pretraining={"epochs": 1})
    out, states = pretrained()
    assert len(list(states.iterdir())) == 2
    discard_old_states(out.parent)
    assert not states.exists()
    assert out.exists()


def test_what_a_kill_left_is_discarded_with_the_state(saved, tmp_path):
    for name in ("0123.pt", "0123.json", ".0123.5a6b.tmp.pt"):
        saved(f"models/data/conv4/epnet/s0/pretrain.state/{name}", 10)
    checkpoint = saved(CHECKPOINT, 11)
    discard_old_states(tmp_path)
    assert list(checkpoint.parent.iterdir()) == [checkpoint]


def test_the_state_of_an_interrupted_training_stays(saved, tmp_path):
    """One has no checkpoint yet, the other has other settings than its checkpoint."""
    saved(CHECKPOINT, 10)
    kept = {
        saved("models/data/conv4/epnet/s0/pretrain.state/4567.pt", 11),
        saved("models/data/conv4/epnet/s0/finetune-1shot.state/0123.pt", 9),
    }
    saved("models/data/conv4/epnet/s0/pretrain.state/0123.pt", 9)
    discard_old_states(tmp_path)
    assert set(tmp_path.rglob("*.state/*")) == kept


def test_features_that_are_not_finished_stay(saved, tmp_path):
    """Those of ImageNet-FS have a state too, in folders."""
    values = saved("imagenet-fs/data/resnet10/s0/features/images.state/0123/values.npy", 9)
    saved("imagenet-fs/data/resnet10/s0/classifier.pt", 10)
    discard_old_states(tmp_path)
    assert values.exists()


def test_features_of_given_up_settings_are_discarded(saved, tmp_path):
    folder = "imagenet-fs/data/resnet10/s0/features"
    for name in ("values.npy", "rows.txt"):
        saved(f"{folder}/images.state/0123/{name}", 9)
    interrupted = saved(f"{folder}/queries.state/0123/values.npy", 9)
    begun = saved(f"{folder}/images.state/4567/values.npy", 11)
    features = saved(f"{folder}/images.npy", 10)
    discard_old_states(tmp_path)
    found = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {features, begun, interrupted}
    assert not (tmp_path / folder / "images.state/0123").exists()


def test_a_state_that_may_not_be_deleted_fails_nothing(saved, tmp_path, monkeypatch):
    state = saved("models/data/conv4/epnet/s0/pretrain.state/0123.pt", 9)
    saved(CHECKPOINT, 10)

    def forbidden(*arguments, **more):
        raise PermissionError("not yours")

    monkeypatch.setattr(Path, "unlink", forbidden)
    discard_old_states(tmp_path)
    assert state.exists()


def test_states_behind_a_link_are_nobodys_to_delete(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").touch()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "pretrain.state").symlink_to(tmp_path / "precious")
    (tmp_path / "results" / "pretrain.pt").touch()
    discard_old_states(tmp_path / "results")
    assert (tmp_path / "precious" / "thesis.tex").exists()
