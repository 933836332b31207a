"""Settings are chosen on validation episodes, by their accuracy there, before tests are read."""

import json

import numpy as np
import pytest

from epcore.data.episodes import Episodes
from epcore.errors import UserError
from epcore.evaluation import evaluate
from epcore.evaluation.embed import Features
from epcore.plan.recipe_models import Propagation
from epcore.plan.stages.testing import EvaluateStage

WAY, SHOT, QUERIES = 5, 2, 4
GRID = (0.001, 0.1, 10.0, 1000.0)
SETTINGS = {
    "embedding": False,
    "part": "full",
    "embedding_alpha": 0.5,
    "label_alpha": 0.2,
    "bandwidth": "std",
    "normalize_labels": True,
    "query_logits": "log-scores",
}


def told(classifier, grid=None):
    return EvaluateStage(
        propagation=Propagation(classifier=classifier, **SETTINGS), grid=grid or {}
    )


@pytest.fixture
def files(tmp_path):
    """Features with few dimensions that tell, and episodes of two halves of the classes."""
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 12)
    values = random.normal(0, 0.7, (240, 8)) + random.normal(0, 1, (20, 8))[labels]
    values *= np.array([5, 1, 1, 1, 1, 1, 1, 0.1])
    Features(np.arange(240), labels, values.astype(np.float32)).save(tmp_path / "features.npz")
    for name, first in (("val", 0), ("novel", 10)):
        rows = np.stack(
            [
                [random.choice(12, SHOT + QUERIES, replace=False) + 12 * c for c in chosen]
                for chosen in (first + random.choice(10, WAY, replace=False) for _ in range(40))
            ]
        )
        episodes = Episodes(rows[..., :SHOT], rows[..., SHOT:], rows[..., :0])
        episodes.save(tmp_path / f"{name}.npz")
    return tmp_path


def scored(folder, stage, episodes="novel", validation="val", out="out"):
    held_out = [folder / f"{validation}.npz"] if validation else None
    files = [folder / f"{episodes}.npz"], [folder / f"{out}.csv"]
    evaluate.run(stage, [folder / "features.npz"], *files, validation=held_out)
    accuracies = np.loadtxt(folder / f"{out}.csv", delimiter=",", skiprows=1)[:, 1]
    return accuracies, json.loads((folder / f"{out}.meta.json").read_text(encoding="utf-8"))


def test_the_best_on_validation_is_tested_and_the_meta_says_so(files):
    on_validation = {}
    for value in GRID:
        stage = told({"name": "ridge", "regularization": value})
        on_validation[value] = scored(files, stage, "val", None)[0].mean()
    best = max(GRID, key=lambda value: on_validation[value])
    assert len(set(on_validation.values())) == len(GRID)
    accuracies, meta = scored(files, told("ridge", {"regularization": GRID}))
    assert meta["chosen"] == {"regularization": best}
    assert meta["validation_accuracy"] == pytest.approx(on_validation[best], abs=1e-6)
    assert meta["classifier"]["regularization"] == best
    alone, _ = scored(files, told({"name": "ridge", "regularization": best}), validation=None)
    np.testing.assert_array_equal(accuracies, alone)


def test_of_equals_the_first_is_taken(files):
    grid = {"preprocessing": [["unit"], ["unit", "unit"]]}
    _, meta = scored(files, told("prototypes", grid))
    assert meta["chosen"] == {"preprocessing": ["unit"]}


def test_tests_are_read_after_the_choice(files, monkeypatch):
    read = []
    load = Episodes.load

    def noted(path):
        read.append(path.name)
        return load(path)

    monkeypatch.setattr(Episodes, "load", noted)
    scored(files, told("ridge", {"regularization": GRID}))
    assert read == ["val.npz", "novel.npz"]


def test_validation_episodes_are_asked_for_and_as_many_as_tests(files):
    stage = told("ridge", {"regularization": GRID})
    with pytest.raises(UserError, match="regularization of the classifier is chosen on validation"):
        scored(files, stage, validation=None)
    novel, out = [files / "novel.npz"] * 2, [files / "1.csv", files / "2.csv"]
    with pytest.raises(UserError, match="2 files, but --validation: 1"):
        evaluate.run(stage, [files / "features.npz"], novel, out, validation=[files / "val.npz"])


def test_a_method_without_settings_to_choose_says_none(files):
    _, meta = scored(files, told("prototypes"), validation=None)
    assert (meta["chosen"], meta["validation_accuracy"]) == ({}, None)
    assert meta["seconds_per_1000_episodes"] > 0
    assert meta["assumes"] == ""
