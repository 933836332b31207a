"""A checkpoint that is lost before it was used costs no training; once it was, no disk."""

import pytest

from epcore.evaluation import embed
from epcore.resume import put_to_use
from epcore.training import finetune, pretrain
from epcore.training.loop import _Training

OUTPUTS = ("pretrain.pt", "pretrain.csv")


@pytest.fixture
def pretrained(told, toy, tmp_path):
    """Trains, or goes on: the checkpoint, and the folder of its resume file."""

    def run(**changes):
        out = tmp_path / "pretrain.pt"
        pretrain.run(told("pretrain", **changes), toy.data, toy.val, out, require_gpu=False)
        return out, tmp_path / "pretrain.state"

    return run


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


def test_fine_tuning_and_embedding_put_a_checkpoint_to_use(pretrained, told, toy, tmp_path):
    out, states = pretrained()
    tuned = tmp_path / "finetune-2shot.pt"
    finetune.run(told("finetune"), toy.data, toy.val, out, tuned, require_gpu=False)
    assert not states.exists()
    assert (tmp_path / "finetune-2shot.state").exists()
    features = tmp_path / "features" / "finetune-2shot.npz"
    embed.run(told("embed"), toy.data, tuned, [toy.novel], features)
    assert not (tmp_path / "finetune-2shot.state").exists()


def test_a_stage_that_fails_leaves_the_state_of_what_it_used(pretrained, told, toy, tmp_path):
    out, states = pretrained()
    with pytest.raises(Exception, match="missing"):
        embed.run(told("embed"), toy.data, out, [tmp_path / "missing.npz"], tmp_path / "out.npz")
    assert list(states.iterdir())


def test_the_state_of_another_config_stays(pretrained):
    out, states = pretrained(pretraining={"epochs": 1})
    pretrained()
    assert len(list(states.iterdir())) == 2
    put_to_use(out)
    assert len(list(states.iterdir())) == 1


def test_a_checkpoint_from_elsewhere_has_nothing_to_forget(tmp_path):
    put_to_use(tmp_path / "downloaded.pt")
    assert not list(tmp_path.iterdir())
