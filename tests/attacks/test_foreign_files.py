"""Stores, episodes and states that are whole and well-formed, and of something else."""

import numpy as np
import pytest
import torch

from epcore.backbones.checkpoint import save_atomically
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.errors import UserError
from epcore.runtime.resume import discard_old_states
from epcore.training.loop import fit
from epcore.training.optimization import Optimization, SteppedSgd

# -- stores ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["[]", "3", "null", '"classes"', '{"a":' * 50_000, "9" * 5000, '{"classes": 3}']
)
def test_a_description_of_something_else_is_told_with_the_remedy(project, text):
    (project / "toy" / "store.json").write_text(text)
    with pytest.raises(UserError, match=r"toy is damaged .*; delete the folder and run") as caught:
        ImageStore.open(project / "toy")
    assert "\n" not in str(caught.value)


def test_an_array_that_claims_a_terabyte_is_told_with_the_remedy(project):
    path = project / "toy" / "labels.npy"
    header = {"descr": "<i8", "fortran_order": False, "shape": (1 << 50,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(80))
    with pytest.raises(UserError, match=r"toy is damaged .*; delete the folder and run"):
        ImageStore.open(project / "toy")


# -- episodes ----------------------------------------------------------------------------------

EPISODES = {
    "fractions": lambda a: {name: each.astype(float) for name, each in a.items()},
    "other integers": lambda a: {name: each.astype(np.int32) for name, each in a.items()},
    "texts": lambda a: {name: each.astype(str) for name, each in a.items()},
    "negative rows": lambda a: a | {"support": a["support"] - 10**6},
    "two dimensions": lambda a: a | {"support": a["support"][:, :, 0]},
    "fewer episodes": lambda a: a | {"query": a["query"][:-1]},
    "fewer classes": lambda a: a | {"query": a["query"][:, :-1]},
    "support in the query": lambda a: a | {"query": np.repeat(a["support"], 2, axis=2)},
    "no query": lambda a: a | {"query": a["query"][:, :, :0]},
    "an array less": lambda a: {"support": a["support"], "query": a["query"]},
    "features": lambda a: {"indices": np.arange(3), "values": np.zeros((3, 4), np.float32)},
}


@pytest.mark.parametrize("kind", EPISODES)
def test_foreign_episodes_are_told_with_the_remedy(project, kind):
    path = project / "novel.npz"
    with np.load(path) as arrays:
        content = EPISODES[kind](dict(arrays))
    np.savez(path, **content)
    said = r"novel\.npz is (damaged .*; delete it and run|no episode file.* missing; give another)"
    with pytest.raises(UserError, match=said) as caught:
        Episodes.load(path)
    assert "\n" not in str(caught.value)


# -- states ------------------------------------------------------------------------------------


class Task:
    """Two layers; what is lost is their sum."""

    steps, images_per_step = 2, 1

    def __init__(self, size=3):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(size, 2), torch.nn.BatchNorm1d(2))

    def seed(self, epoch):
        return epoch

    def losses(self, epoch, start, generator):
        for _ in range(start, self.steps):
            yield self.model(torch.rand(4, 3, generator=generator)).square().mean()

    def validate(self):
        return 0.5, 1.0


def plateau(epochs, **changes):
    falls = {"metric": "accuracy", "patience": 5, "factor": 0.1}
    given = {"momentum": 0.9, "weight_decay": 0.1, "schedule": "plateau", "stop_ratio": 1e-4}
    given |= {"learning_rate": 0.1, "plateau": falls} | changes
    return Optimization(epochs=epochs, **given)


def stepped(epochs, drops=(1,)):
    return SteppedSgd(epochs=epochs, learning_rate=0.1, momentum=0.9, weight_decay=0.1,
                          drops=drops, keep="last")  # fmt: skip


@pytest.fixture
def state(tmp_path):
    path = tmp_path / "0123.pt"
    fit(Task(), plateau(2), 0, path, "toy")
    return path


def resumed(path, settings, task=None):
    return fit(task or Task(), settings, 0, path, "toy")


def refused(path, settings, task=None):
    before = path.read_bytes()
    with pytest.raises(UserError) as caught:
        resumed(path, settings, task)
    message = str(caught.value)
    assert message.startswith(f"{path} is not the state of this training (")
    assert message.endswith("; delete it and run the same command again to train from the start")
    assert "\n" not in message
    assert path.read_bytes() == before


@pytest.mark.parametrize("settings", [plateau, stepped])
def test_its_own_state_is_resumed(tmp_path, settings):
    fit(Task(), settings(2), 0, tmp_path / "0123.pt", "toy")
    assert resumed(tmp_path / "0123.pt", settings(3)).resumed_from == 2


def put(*path, value):
    """Sets a part of a state, at any depth, to a value or to what a function makes of it."""

    def change(content):
        *above, last = path
        place = content
        for key in above:
            place = place[key]
        place[last] = value(place[last]) if callable(value) else value

    return change


def without(*path):
    def change(content):
        *above, last = path
        place = content
        for key in above:
            place = place[key]
        del place[last]

    return change


STATES = {
    "a layer less": without("model", "0.weight"),
    "a layer more": put("model", "2.weight", value=torch.zeros(1)),
    "a layer of another size": put("model", "0.weight", value=lambda w: w[:, :2]),
    "two groups of weights": put("optimizer", "param_groups", value=lambda g: g * 2),
    "random numbers of another kind": put("random", value=(torch.zeros(5), torch.zeros(5), None)),
    "a part less": without("scheduler"),
    "a list for a part": put("optimizer", value=[1, 2]),
}


@pytest.mark.parametrize("kind", STATES)
def test_a_state_that_cannot_be_loaded_is_told_with_the_remedy(state, kind):
    content = torch.load(state, weights_only=True)
    STATES[kind](content)
    save_atomically(state, content)
    refused(state, plateau(3))


def test_the_state_of_another_network_is_told_with_the_remedy(state):
    refused(state, plateau(3), Task(size=4))


@pytest.mark.parametrize("content", [[1, 2], {"format": "epcore training state 1"}, {}, "text"])
def test_what_is_no_state_is_told_with_the_remedy(state, content):
    save_atomically(state, content)
    with pytest.raises(UserError, match=r"of another version of this program; delete it and run"):
        resumed(state, plateau(3))


def test_states_behind_a_link_are_nobodys_to_delete(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").touch()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "pretrain.state").symlink_to(tmp_path / "precious")
    (tmp_path / "results" / "pretrain.pt").touch()
    discard_old_states(tmp_path / "results")
    assert (tmp_path / "precious" / "thesis.tex").exists()
