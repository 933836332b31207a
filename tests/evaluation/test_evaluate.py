"""Frozen episodes: the queries are classified as the paper says, one episode like another."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from episode_batches import batch_of
from plans import plan_of
from reference import cross_entropy, embeddings, label_scores

from epcore.data.episodes import Episodes
from epcore.evaluation import evaluate, evaluate_classifiers
from epcore.evaluation.base_classes import BaseClasses
from epcore.evaluation.config import EvaluateConfig
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import BATCH, solve
from epcore.report.config import ScoreColumn
from epcore.report.scores import read_scores

WAY = 5


def stage(recipe="epnet"):
    return plan_of("paper").runs.evaluate("conv4", recipe)


def inference(recipe="epnet"):
    return Inference(stage(recipe).propagation)


def of(support, query):
    """Episodes without unlabeled images."""
    return Episodes(support, query, np.empty((*support.shape[:2], 0), np.int64))


def drawn(episodes, shot=1, queries=3, spread=1.0, seed=0):
    """Episodes of images of 10 classes, and features around a point of each class."""
    random = np.random.default_rng(seed)
    of_class = np.arange(200).reshape(10, 20)
    rows = np.stack(
        [
            [random.choice(of_class[c], shot + queries, replace=False) for c in chosen]
            for chosen in (random.choice(10, WAY, replace=False) for _ in range(episodes))
        ]
    )
    centers = np.repeat(random.normal(0, 1, (10, 16)), 20, axis=0)
    values = centers + spread * random.normal(0, 1, (200, 16))
    features = Features(np.arange(200), np.arange(200) // 20, values.astype(np.float32))
    return features, of(rows[..., :shot], rows[..., shot:])


@pytest.mark.parametrize(
    ("recipe", "bandwidth", "normalize"),
    [
        ("epnet", "std", True),
        ("net", "std", True),
        ("epnet-paper", "std", False),
        ("epnet-paper-literal", "var", False),
    ],
)
@pytest.mark.parametrize("shot", [1, 5])
def test_queries_are_classified_as_by_the_formulas_in_float64(recipe, bandwidth, normalize, shot):
    features, episodes = drawn(30, shot, spread=1.5)
    results = solve(features, episodes, inference(recipe))
    accuracies, losses = [], []
    for support, query in zip(episodes.support, episodes.query, strict=True):
        rows = [row for of_class in support for row in of_class]
        expected = [place for place, of_class in enumerate(query) for _ in of_class]
        rows += [row for of_class in query for row in of_class]
        points = np.stack([features.values[row] for row in rows]).astype(np.float64)
        if recipe != "net":
            points = embeddings(points, bandwidth)
        scores = label_scores(points, WAY, shot, bandwidth, normalize)[WAY * shot :]
        accuracies.append(np.mean(scores.argmax(1) == expected))
        logits = scores if recipe == "epnet-paper-literal" else np.log(scores + 1e-6)
        losses.append(cross_entropy(logits, expected))
    assert 0.3 < np.mean(accuracies) < 0.97
    np.testing.assert_allclose(results.accuracies, accuracies, atol=1e-12)
    np.testing.assert_allclose(results.losses, losses, rtol=1e-3)


def test_episodes_solved_in_batches_are_those_solved_one_by_one():
    features, episodes = drawn(230)
    assert len(episodes) % BATCH != 0
    assert len(episodes) > 2 * BATCH
    together = solve(features, episodes, inference())
    alone = [
        solve(features, of(episodes.support[n : n + 1], episodes.query[n : n + 1]), one)
        for one in [inference()]
        for n in range(len(episodes))
    ]
    assert together.accuracies.tolist() == [result.accuracies[0] for result in alone]
    np.testing.assert_allclose(together.losses, [result.losses[0] for result in alone], rtol=1e-4)


def test_a_classifier_is_told_an_episodes_number_among_all_of_them_in_any_batch(monkeypatch):
    """Of the classifier that draws its first weights by it."""
    features, episodes = drawn(5)
    scored = inference("net+baseline")
    monkeypatch.setattr("epcore.evaluation.solve.BATCH", 2)
    found = solve(features, episodes, scored).losses
    expected, as_the_first = [], []
    pairs = zip(episodes.images(), episodes.query_labels, strict=True)
    for number, (rows, labels) in enumerate(pairs):
        for given, losses in ((number, expected), (0, as_the_first)):
            alone = batch_of(
                features.of(rows[None]), WAY, 1, len(labels), numbers=torch.tensor([given])
            )
            losses.append(cross_entropy(scored.scores(alone)[0].double().numpy(), labels))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert not np.allclose(expected, as_the_first, rtol=1e-2)


def test_the_labels_of_queries_follow_the_order_of_an_episodes_rows():
    episodes = of(np.array([[[10], [20], [30]]]), np.array([[[11, 12], [21, 22], [31, 32]]]))
    queries = episodes.images()[0][3:]
    assert queries.tolist() == [11, 12, 21, 22, 31, 32]
    assert episodes.query_labels[0].tolist() == [row // 10 - 1 for row in queries]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["epnet", "net"])
def test_features_that_say_nothing_give_chance(recipe):
    features, episodes = drawn(300, queries=10)
    noise = np.random.default_rng(1).normal(size=features.values.shape).astype(np.float32)
    accuracies = solve(replace(features, values=noise), episodes, inference(recipe)).accuracies
    assert accuracies.mean() == pytest.approx(1 / WAY, abs=0.02)


def test_embedding_propagation_changes_the_answers():
    features, episodes = drawn(50)
    one, other = (solve(features, episodes, inference(name)) for name in ("epnet", "net"))
    assert (one.accuracies != other.accuracies).any()


def test_the_stage_writes_one_line_per_episode_and_the_same_bytes_twice(tmp_path):
    features, episodes = drawn(12)
    features.save(tmp_path / "features.npz")
    episodes.save(tmp_path / "episodes.npz")
    files = [tmp_path / "scores" / "one.csv", tmp_path / "scores" / "two.csv"]
    for out in files:
        evaluate.run(stage(), tmp_path / "features.npz", tmp_path / "episodes.npz", out)
    assert files[0].read_bytes() == files[1].read_bytes()
    header, *lines = files[0].read_text(encoding="utf-8").splitlines()
    assert header == "episode,accuracy"
    assert [line.split(",")[0] for line in lines] == [str(n) for n in range(12)]
    expected = solve(features, episodes, inference()).accuracies
    assert [line.split(",")[1] for line in lines] == [f"{value:.6f}" for value in expected]
    facts = json.loads((tmp_path / "scores" / "one.meta.json").read_text(encoding="utf-8"))
    assert facts["episodes"] == 12
    assert facts["config"] == stage().model_dump(mode="json")
    shared = ("label_alpha", "bandwidth", "normalize_labels", "query_logits")
    settings = {key: facts["config"]["propagation"][key] for key in shared}
    assert facts["classifier"] == {
        "name": "label-propagation",
        "preprocessing": [],
        **settings,
    }


@pytest.fixture
def network(tmp_path):
    """Files of a network's features, its base classes and nine episodes."""
    features, episodes = drawn(9)
    random = np.random.default_rng(0)
    base = BaseClasses(random.normal(0, 1, 16).astype(np.float32), np.empty((0, 16), np.float32))
    files = {name: tmp_path / f"{name}.npz" for name in ("features", "episodes", "base")}
    for name, content in (("features", features), ("episodes", episodes), ("base", base)):
        content.save(files[name])
    return files


def classifiers(*names):
    return plan_of("paper").runs.evaluate_classifiers("conv4", "net", names)


def test_classifiers_share_a_file_with_a_column_each_as_if_alone(network, tmp_path):
    """The base classes count in the scores of one of them."""
    names = ("nearest-mean", "simpleshot")
    together = tmp_path / "together.csv"
    evaluate_classifiers.run(classifiers(*names), **network, out=together)
    table = pd.read_csv(together)
    assert list(table) == ["episode", *names]
    facts = json.loads(together.with_suffix(".meta.json").read_text(encoding="utf-8"))
    assert facts["inputs"].keys() == {str(file) for file in network.values()}
    for name in names:
        alone = tmp_path / f"{name}.csv"
        evaluate_classifiers.run(classifiers(name), **network, out=alone)
        assert (pd.read_csv(alone)[name] == table[name]).all()
        assert facts["classifiers"][name]["classifier"]["name"]
        assert facts["classifiers"][name]["seconds_per_1000_episodes"] > 0
        scores = ScoreColumn(file=str(together), column=name)
        assert read_scores(scores) == pytest.approx(100 * table[name])
    assert (table["nearest-mean"] != table["simpleshot"]).any()


def test_a_classifiers_accuracies_are_those_of_a_recipe_that_has_it(network, tmp_path):
    out, own = tmp_path / "classifiers.csv", tmp_path / "own.csv"
    evaluate_classifiers.run(classifiers("nearest-mean"), **network, out=out)
    test = dict(classifiers("nearest-mean").classifiers["nearest-mean"])
    evaluate.run(EvaluateConfig(**test), network["features"], network["episodes"], own)
    assert (pd.read_csv(own)["accuracy"] == pd.read_csv(out)["nearest-mean"]).all()
