"""A checkpoint that is lost before it was used costs no training; once it was, no disk."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from epcore.errors import UserError
from epcore.evaluation import embed, evaluate
from epcore.plan import Plan
from epcore.plan.stages import EvaluateStage
from epcore.resume import ResumeFiles, put_to_use
from epcore.training import finetune, pretrain
from epcore.training.loop import _Training

ROOT = Path(__file__).parents[2]
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


def test_fine_tuning_and_evaluation_put_a_checkpoint_to_use(pretrained, told, toy, tmp_path):
    """Embedding does not: on a cluster it is a part of the job that may fail as a whole."""
    out, states = pretrained()
    tuned = tmp_path / "finetune-2shot.pt"
    finetune.run(told("finetune"), toy.data, toy.val, out, tuned, require_gpu=False)
    assert not states.exists()
    features = tmp_path / "features" / "finetune-2shot.npz"
    embed.run(told("embed"), toy.data, tuned, [toy.novel], features)
    assert list((tmp_path / "finetune-2shot.state").iterdir())
    stage = EvaluateStage(**json.loads(Plan(ROOT / "config", "demo").evaluate("conv4", "epnet")))
    evaluate.run(stage, features, [toy.novel], [tmp_path / "scores.csv"])
    assert not (tmp_path / "finetune-2shot.state").exists()


def test_a_stage_that_fails_leaves_the_state_of_what_it_used(pretrained, told, toy, tmp_path):
    out, states = pretrained()
    stage, tuned = told("finetune", finetuning={"learning_rate": 1e12}), tmp_path / "tuned.pt"
    with pytest.raises(UserError, match="diverged"):
        finetune.run(stage, toy.data, toy.val, out, tuned, require_gpu=False)
    assert list(states.iterdir())


def test_what_several_use_at_once_or_belongs_to_others_stops_nobody(tmp_path, monkeypatch):
    files = ResumeFiles(tmp_path / "pretrain.state", "key")
    for _ in range(300):
        files.folder.mkdir()
        files.state().touch()
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(lambda _: files.delete(), range(3)))
        assert not files.folder.exists()
    files.folder.mkdir()
    files.state().touch()

    def forbidden(*arguments, **more):
        raise PermissionError("not yours")

    monkeypatch.setattr(Path, "unlink", forbidden)
    files.delete()
    assert files.state().exists()


def test_the_state_of_another_config_stays(pretrained):
    out, states = pretrained(pretraining={"epochs": 1})
    pretrained()
    assert len(list(states.iterdir())) == 2
    put_to_use(out)
    assert len(list(states.iterdir())) == 1


def test_a_checkpoint_from_elsewhere_has_nothing_to_forget(tmp_path):
    put_to_use(tmp_path / "downloaded.pt")
    assert not list(tmp_path.iterdir())
