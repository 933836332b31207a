"""Files of one kind that do not belong together are not used together."""

import json

import numpy as np
import pytest

from epcore.evaluation.base_classes import BaseClasses

from .conftest import EPISODES


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


def test_base_classes_are_of_the_network_of_the_features(project):
    assert project.finetune() == 0
    assert project.base_classes(weights="fine.pt", out="base-fine.npz") == 0
    assert project.evaluate_classifiers(base="base-fine.npz") == 2
    project.complaint("base-fine.npz is of another checkpoint or data set than", "features.npz")
    assert project.base_classes(out="base.npz") == 0
    assert project.evaluate_classifiers(base="base.npz") == 0


def test_base_classes_without_a_meta_have_as_many_numbers_as_the_features(project):
    few = np.zeros(3, np.float32)
    BaseClasses(few, np.zeros((4, 3), np.float32)).save(project / "base.npz")
    assert project.evaluate_classifiers(base="base.npz") == 2
    project.complaint("base.npz is of a network with 3 features", "give those of one network")


def test_the_best_of_several_was_validated_on_the_same_episodes(project):
    other = EPISODES | {"split": "val", "seed": 5}
    assert project.run("episodes", other, data="toy", out="val-other.npz") == 0
    assert project.pretrain(episodes="val-other.npz", out="net-other.pt") == 0
    config = {"stage_version": 1, "candidates": ["one", "other"]}
    checkpoints = ["net.pt", "net-other.pt"]
    assert project.run("select", config, checkpoints=checkpoints, out="best.pt") == 2
    project.complaint("net-other.pt is of another choice of validation episodes than", "net.pt")
    assert not (project / "best.pt").exists()


def test_a_file_that_says_nothing_of_its_origin_is_taken(project):
    """Weights from elsewhere, or a meta file of something else beside them."""
    meta = project / "novel.meta.json"
    facts = json.loads(meta.read_text(encoding="utf-8"))
    facts["made"] = {"something.else": "0" * 64}
    meta.write_text(json.dumps(facts), encoding="utf-8")
    assert project.evaluate() == 0
