"""A classifier of a user's is called by its dotted path, wherever it lives."""

import sys

import pytest
import torch
from episode_batches import batch_of

from epcore.classifiers import load_classifier
from epcore.errors import UserError

NEAREST_SUPPORT = """
from epcore.classifiers import EpisodeBatch, EpisodeClassifier


class Nearest(EpisodeClassifier):
    scale: float = 1
    bandwidth: str = "std"

    def logits(self, episodes: EpisodeBatch):
        gaps = episodes.query[..., None, :] - episodes.class_means[..., None, :, :]
        return -self.scale * gaps.abs().sum(-1)


class Unfinished(EpisodeClassifier):
    pass


SOMETHING = 3
"""


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """A package of a user's, somewhere on Python's path."""
    (tmp_path / "my_methods").mkdir()
    (tmp_path / "my_methods" / "nearest.py").write_text(NEAREST_SUPPORT, encoding="utf-8")
    (tmp_path / "my_methods" / "broken.py").write_text("import torch\nimport trch\n")
    monkeypatch.syspath_prepend(tmp_path)


def load(path, **settings):
    return load_classifier({"name": path, **settings}, {"bandwidth": "var", "part": "full"}, "here")


def test_it_takes_its_own_settings_and_those_that_it_shares():
    classifier = load("my_methods.nearest.Nearest", scale=2)
    assert (classifier.scale, classifier.bandwidth) == (2, "var")
    points = torch.tensor([[[0.0], [4.0], [1.0]]])
    scores = classifier.scores(batch_of(points, 2, 1, 1))
    assert scores.tolist() == [[[-2.0, -6.0]]]


def test_a_file_of_the_working_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "beside_the_snakefile.py").write_text(NEAREST_SUPPORT, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("sys.path", [*sys.path])
    assert load("beside_the_snakefile.Nearest").scale == 1


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere.Mine", "nowhere.Mine cannot be imported (ModuleNotFoundError: No module named"),
        (
            "my_methods.broken.Mine",
            "cannot be imported (ModuleNotFoundError: No module named 'trch')",
        ),
        ("my_methods.nearest.Mine", "cannot be imported (AttributeError: "),
        ("my_methods.nearest.SOMETHING", "is no class that extends EpisodeClassifier"),
        ("my_methods.nearest.Unfinished", "has no logits(); write it"),
    ],
)
def test_a_mistake_is_told_in_one_line(path, problem):
    with pytest.raises(UserError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith("here: ")
    assert problem in message
    assert "\n" not in message
