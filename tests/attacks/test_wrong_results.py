"""What would give a wrong number without a word is refused."""

import numpy as np
import pytest


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_not_scored(project, value):
    """Nearest class means without propagation would make chance of them."""
    arrays = dict(np.load(project / "features.npz"))
    arrays["values"][7, 3] = value
    np.savez(project / "features.npz", **arrays)
    (project / "features.meta.json").unlink()
    assert project.evaluate() == 2
    project.complaint("features.npz", "not finite")
    assert not (project / "scores.csv").exists()


def episodes_with(project, change, name="novel.npz"):
    """Other episodes in the place of the project's, without a meta, as of one's own."""
    with np.load(project / name) as arrays:
        content = {key: arrays[key] for key in arrays.files}
    change(content)
    np.savez(project / name, **content)
    (project / name).with_suffix(".meta.json").unlink()


def swap_support(content):
    support = content["support"]
    support[3, [0, 1], 0] = support[3, [1, 0], 0]


def swap_query(content):
    query = content["query"]
    query[3, [0, 1], 0] = query[3, [1, 0], 0]


def double_class(content):
    """One class stands for two of an episode, the second time with other images."""
    labels = np.load("toy/labels.npy")
    support, query = content["support"], content["query"]
    shown = {*support[5].flat, *query[5].flat}
    same = np.flatnonzero(labels == labels[support[5, 0, 0]])
    others = [row for row in same if row not in shown]
    support[5, 1], query[5, 1] = others[: support.shape[2]], others[-query.shape[2] :]


@pytest.mark.parametrize("change", [swap_support, swap_query])
@pytest.mark.parametrize("stage", ["pretrain", "finetune", "evaluate"])
def test_episodes_are_of_the_classes_of_their_images(project, change, stage):
    tested = stage == "evaluate"
    episodes_with(project, change, "novel.npz" if tested else "val.npz")
    out, source = ("new.csv", "features.npz") if tested else ("new.pt", "toy")
    assert getattr(project, stage)(out=out) == 2
    project.complaint("episode file", "another data set than", source)
    assert not (project / out).exists()


def test_two_classes_of_an_episode_are_two(project):
    episodes_with(project, double_class)
    assert project.evaluate() == 2
    project.complaint("novel.npz was drawn from another data set")


def test_episodes_of_a_larger_data_set_without_a_meta_are_told(project):
    arrays = dict(np.load(project / "novel.npz"))
    arrays["query"][0, 0, 0] = 10**6
    np.savez(project / "novel.npz", **arrays)
    (project / "novel.meta.json").unlink()
    assert project.evaluate() == 2
    project.complaint("another data set than", "features.npz", "draw some")
