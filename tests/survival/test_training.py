"""A training process may be killed as often as one likes: the result is the same, byte by byte."""

import random
import signal
import time
from pathlib import Path

import pytest
import torch

from epcore.commands import cli
from epcore.files import canonical_json
from epcore.plan import Plan
from epcore.training import loop

pytestmark = pytest.mark.slow

CONFIG = Path(__file__).parents[2] / "config"
LONG = {"pretraining": {"epochs": 12, "batch_size": 6, "plateau": {"patience": 2}}}


def command_line(name, stage, toy):
    """Runs a stage that trains: a function of its output and of the seconds between its saves."""
    config = canonical_json(stage.model_dump(mode="json"))

    def command(out, save_every):
        torch.set_num_threads(1)
        loop.SAVE_EVERY = save_every
        inputs = ["--data", str(toy.data), "--episodes", str(toy.val), "--out", str(out)]
        out.parent.mkdir(exist_ok=True)
        raise SystemExit(cli.main([name, "--config", config, *inputs]))

    return command


@pytest.fixture(scope="module")
def train(stage_config, toy):
    """A pretraining with dropout, flips and momentum."""
    stage = stage_config("pretrain", "epnet", "resnet12", augmentation=["flip"], **LONG)
    return command_line("pretrain", stage, toy)


@pytest.fixture
def meta_train(toy):
    """A training of MAML with one step, of four epochs of six steps."""
    stage = Plan(CONFIG, "demo").compared.meta_train("glyph-mini", "conv4", "maml", 0, 2)
    short = {"epochs": 4, "steps": 6, "tasks": 1, "queries": 3, "halve_every": 2}
    changes = {
        "training": stage.training.model_copy(update=short),
        "method": stage.method | {"steps": 1, "test_steps": 1},
    }
    return command_line("meta-train", stage.model_copy(update=changes), toy)


@pytest.fixture(scope="module")
def undisturbed(train, attempt, tmp_path_factory):
    """The folder of an undisturbed training, and the seconds that it took."""
    out = tmp_path_factory.mktemp("training") / "undisturbed" / "pretrain.pt"
    started = time.monotonic()
    assert attempt(train, out, 600).code() == 0
    return out.parent, time.monotonic() - started


def same(first, second):
    """Checkpoints and curves."""
    outputs = [path.name for path in second.iterdir() if path.suffix in (".pt", ".csv")]
    assert len(outputs) == 2
    return all((first / name).read_bytes() == (second / name).read_bytes() for name in outputs)


def identities(states):
    """Identities of a folder's files: another one after every time that a file is written anew."""
    return {
        (path.name, path.stat().st_ino, path.stat().st_mtime_ns) for path in states.glob("[!.]*.pt")
    }


@pytest.mark.parametrize("share_between_saves", [0, 1 / 160])
def test_killed_five_times_at_random_moments(
    train, undisturbed, attempt, eventually, tmp_path, share_between_saves
):
    """Also in the middle of writing its state; the moments are shares of this machine's time."""
    undisturbed, whole = undisturbed
    out = tmp_path / "killed" / "pretrain.pt"
    states = out.with_suffix(".state")
    moments = random.Random(7)
    for _ in range(5):
        saved = identities(states)
        process = attempt(train, out, whole * share_between_saves)
        eventually(lambda before=saved: identities(states) - before)
        after = whole * moments.uniform(0, 0.01)
        assert process.send(signal.SIGKILL, after) == -signal.SIGKILL
    assert attempt(train, out, 600).code() == 0
    assert same(out.parent, undisturbed)
    assert sorted(path.name for path in out.parent.iterdir()) == sorted(
        ["pretrain.csv", "pretrain.meta.json", "pretrain.pt", "pretrain.state"]
    )
    assert [path.suffix for path in states.glob("[!.]*")] == [".pt"]


def test_a_compared_method_killed_at_random_moments(meta_train, attempt, eventually, tmp_path):
    """Five times, each after one more of its steps was saved."""
    whole, killed = (tmp_path / name / "meta-2shot.pt" for name in ("whole", "killed"))
    assert attempt(meta_train, whole, 600).code() == 0
    states = killed.with_suffix(".state")
    moments = random.Random(7)
    for _ in range(5):
        saved = identities(states)
        process = attempt(meta_train, killed, 0)
        eventually(lambda before=saved: identities(states) - before)
        assert process.send(signal.SIGKILL, moments.uniform(0, 0.2)) == -signal.SIGKILL
        assert not killed.exists()
    assert attempt(meta_train, killed, 600).code() == 0
    assert same(killed.parent, whole.parent)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_leave_it_saves_the_step_and_leaves(
    train, undisturbed, attempt, eventually, tmp_path, number
):
    out = tmp_path / "asked" / "pretrain.pt"
    states = out.with_suffix(".state")
    process = attempt(train, out, 600)  # saves of its own accord after whole epochs alone
    eventually(lambda: list(states.glob("*.pt")))
    assert process.send(number, 0.03) == 128 + number
    (state,) = states.glob("*.pt")
    saved = torch.load(state, weights_only=True)
    assert 0 < len(saved["curve"]) < LONG["pretraining"]["epochs"]
    assert attempt(train, out, 600).code() == 0
    assert same(out.parent, undisturbed[0])
