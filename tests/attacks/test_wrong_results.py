"""What would give a wrong number without a word is refused."""

import numpy as np
import pytest
import torch


def poison(project, value, name="net.pt"):
    """One weight of a checkpoint that is not finite; its meta file is gone, as of one's own."""
    content = torch.load(project / name, weights_only=True)
    weights = next(iter(content["weights"].values()))
    weights.view(-1)[0] = value
    torch.save(content, project / name)
    (project / name).with_suffix(".meta.json").unlink()


def test_weights_that_are_not_finite_give_no_base_classes(project):
    poison(project, float("nan"))
    assert project.base_classes(out="made.npz") == 2
    project.complaint("net.pt", "not finite")
    assert not (project / "made.npz").exists()


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


def foreign(project, name, stage, **paths):
    """A file of the other data set in the place of one of this."""
    assert getattr(project, stage)(**{"data": "other", "out": name, **paths}) == 0


def test_episodes_of_another_data_set_are_refused(project):
    assert project.episodes(data="other", out="theirs.npz") == 0
    assert project.evaluate(episodes="theirs.npz") == 2
    project.complaint("theirs.npz", "another data set")


def test_features_of_another_data_set_are_refused(project):
    assert project.episodes(data="other", out="theirs.npz") == 0
    assert project.embed(data="other", out="far.npz") == 0
    assert project.evaluate(features="far.npz") == 2
    project.complaint("another data set")
    assert project.evaluate(features="far.npz", episodes="theirs.npz", out="fine.csv") == 0


@pytest.mark.parametrize("stage", ["pretrain", "finetune"])
def test_a_training_takes_one_data_set(project, stage):
    assert getattr(project, stage)(data="other", out="new.pt") == 2
    project.complaint("another data set")


def test_the_base_mean_is_of_the_data_that_the_network_was_trained_on(project):
    assert project.base_classes(data="other") == 2
    project.complaint("net.pt", "another data set")


def test_weights_may_be_tested_on_another_data_set(project):
    """Cross-domain tests are no mistake."""
    assert project.embed(data="other", out="far.npz") == 0


def test_episodes_of_a_larger_data_set_without_a_meta_are_told(project):
    arrays = dict(np.load(project / "novel.npz"))
    arrays["query"][0, 0, 0] = 10**6
    np.savez(project / "novel.npz", **arrays)
    (project / "novel.meta.json").unlink()
    assert project.evaluate() == 2
    project.complaint("another data set than", "features.npz", "draw some")
