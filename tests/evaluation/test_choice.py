"""Settings are chosen on validation episodes, by their accuracy there."""

import json

import numpy as np
import pytest

from epcore.data.episodes import Episodes
from epcore.errors import UserError
from epcore.evaluation import evaluate_classifiers
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.config import ClassifierTest, EvaluateClassifiersConfig, Propagation
from epcore.evaluation.embed import Features

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
    propagation = Propagation(classifier=classifier, **SETTINGS)
    test = ClassifierTest(propagation=propagation, grid=grid or {})
    return EvaluateClassifiersConfig(classifiers={"it": test})


@pytest.fixture
def files(tmp_path):
    """Features with few dimensions that tell, and episodes of two halves of the classes."""
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 12)
    values = random.normal(0, 0.7, (240, 8)) + random.normal(0, 1, (20, 8))[labels]
    values *= np.array([5, 1, 1, 1, 1, 1, 1, 0.1])
    Features(np.arange(240), labels, values.astype(np.float32)).save(tmp_path / "features.npz")
    BaseClasses(np.zeros(8, np.float32), np.empty((0, 8), np.float32)).save(tmp_path / "base.npz")
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
    evaluate_classifiers.run(
        stage,
        folder / "features.npz",
        folder / "base.npz",
        folder / f"{episodes}.npz",
        folder / f"{out}.csv",
        folder / f"{validation}.npz" if validation else None,
    )
    accuracies = np.loadtxt(folder / f"{out}.csv", delimiter=",", skiprows=1)[:, 1]
    facts = json.loads((folder / f"{out}.meta.json").read_text(encoding="utf-8"))
    return accuracies, facts["classifiers"]["it"]


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


def test_validation_episodes_are_asked_for(files):
    stage = told("ridge", {"regularization": GRID})
    with pytest.raises(UserError, match="regularization of the classifier is chosen on validation"):
        scored(files, stage, validation=None)


def test_a_method_without_settings_to_choose_says_none(files):
    _, meta = scored(files, told("prototypes"), validation=None)
    assert (meta["chosen"], meta["validation_accuracy"]) == ({}, None)
    assert meta["seconds_per_1000_episodes"] > 0
    assert meta["assumes"] == ""
