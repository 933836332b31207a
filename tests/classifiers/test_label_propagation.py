"""Label propagation, with and without unlabeled images, by the formulas written as loops."""

import math

import numpy as np
import pytest
import torch
from episode_batches import batch_of
from plans import plan_of
from reference import cross_entropy, propagator

from epcore.data.episodes import Episodes
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.evaluation.solve import solve

WAY, SHOT, QUERIES, UNLABELED = 4, 2, 3, 5


def settings(recipe="epnet", **changes):
    stage = plan_of("paper").runs.evaluate("conv4", recipe)
    return stage.propagation.model_copy(update=changes)


# -- the authors' code in float64, one loop an index -----------------------------------------------


def brute_label_propagation(points, labels, way, used):
    """Log-scores of all points; a label is a class, or None. Classes weigh alike."""
    matrix = propagator(points, used.label_alpha, used.bandwidth)
    scores = np.zeros((len(points), way))
    for i in range(len(points)):
        row_sum = sum(matrix[i]) if used.normalize_labels else 1.0
        for j, label in enumerate(labels):
            if label is not None:
                scores[i, label] += matrix[i, j] / row_sum / labels.count(label)
    return np.log(scores + 1e-6)


def brute_semi_supervised(features, used, way=WAY, shot=SHOT, queries=QUERIES):
    """Logits of the queries, and the pseudo-labels, of support, queries and unlabeled images."""
    points = np.asarray(features, dtype=np.float64)
    if used.embedding:
        points = propagator(points, used.embedding_alpha, used.bandwidth) @ points
    support = [c for c in range(way) for _ in range(shot)]
    asked = [None] * (way * queries)
    rest = [None] * (len(points) - len(support) - len(asked))
    first = brute_label_propagation(points, support + asked + rest, way, used)
    guesses = [int(np.argmax(row)) for row in first[len(support) + len(asked) :]]
    second = brute_label_propagation(points, support + asked + guesses, way, used)
    logits = second[len(support) : len(support) + len(asked)]
    return (logits if used.query_logits == "log-scores" else np.exp(logits)), guesses


def clusters(spread, seed=0, way=WAY, counts=(SHOT, QUERIES, UNLABELED), size=6):
    """Features `(N, size)` of an episode: support, queries, unlabeled, around class centers."""
    random = np.random.default_rng(seed)
    centers = random.normal(0, 1, (way, size))
    parts = [centers[:, None] + spread * random.normal(0, 1, (way, n, size)) for n in counts]
    return np.concatenate([part.reshape(-1, size) for part in parts])


def logits_of(features, used, way=WAY, shot=SHOT, queries=QUERIES):
    """From features `(N, D)` of one episode, unlabeled images last."""
    return Inference(used).scores(batch_of(torch.as_tensor(features), way, shot, way * queries))


@pytest.mark.parametrize("recipe", ["epnet", "net"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("query_logits", ["log-scores", "scores"])
@pytest.mark.parametrize("bandwidth", ["std", "var"])
def test_logits_are_those_of_the_formulas_for_every_setting(
    recipe, normalize, query_logits, bandwidth
):
    used = settings(
        recipe, normalize_labels=normalize, query_logits=query_logits, bandwidth=bandwidth
    )
    for seed in range(3):
        features = clusters(1.2, seed)
        expected, guesses = brute_semi_supervised(features, used)
        assert len(set(guesses)) > 1
        np.testing.assert_allclose(logits_of(features, used).numpy(), expected, rtol=1e-8)


@pytest.mark.parametrize("label_alpha", [0.05, 0.9])
def test_the_label_alpha_of_the_recipe_is_used_both_times(label_alpha):
    used = settings(label_alpha=label_alpha)
    features = clusters(1.5, seed=4)
    expected, _ = brute_semi_supervised(features, used)
    np.testing.assert_allclose(logits_of(features, used).numpy(), expected, rtol=1e-8)


def test_float32_features_give_the_answers_of_float64():
    used, features = settings(), clusters(1.2, seed=2)
    exact, rounded = logits_of(features, used), logits_of(features.astype(np.float32), used)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded.double(), exact, rtol=1e-3, atol=1e-3)


def test_two_points_of_each_of_two_classes_by_hand():
    """On a line: support 0 and 10, queries 1 and 9, unlabeled 2 and 8, which join 0 and 10."""
    points = np.array([[0.0], [10], [1], [9], [2], [8]])
    logits = logits_of(points, settings("net"), way=2, shot=1, queries=1)
    matrix = propagator(points, 0.2, "std")
    near = (matrix[2, 0] + matrix[2, 4]) / 2 / matrix[2].sum()
    far = (matrix[2, 1] + matrix[2, 5]) / 2 / matrix[2].sum()
    expected = [[math.log(near + 1e-6), math.log(far + 1e-6)]]
    expected.append(expected[0][::-1])
    np.testing.assert_allclose(logits.numpy(), expected, rtol=1e-9)


def test_a_class_weighs_the_same_however_many_pseudo_labels_it_gets():
    """5 unlabeled near class 0, 1 near class 1: a point midway between is not drawn to 0."""
    used = settings("net", label_alpha=0.5)
    line = [0, 10, 5.01, 9, -1, 1, -0.5, 0.5, 0.2, 10.5]
    unlabeled = np.array(line)[:, None]
    _, guesses = brute_semi_supervised(unlabeled, used, way=2, shot=1, queries=1)
    assert guesses == [0, 0, 0, 0, 0, 1]
    logits = logits_of(unlabeled, used, way=2, shot=1, queries=1)
    assert logits.argmax(dim=-1).tolist() == [1, 1]


# -- the stage -------------------------------------------------------------------------------------


def drawn(episodes, spread=1.2, seed=0):
    """Features of 8 classes, and episodes with unlabeled images of 4 of them."""
    random = np.random.default_rng(seed)
    images = 20
    centers = np.repeat(random.normal(0, 1, (8, 6)), images, axis=0)
    values = (centers + spread * random.normal(0, 1, centers.shape)).astype(np.float32)
    rows = np.stack(
        [
            [images * c + random.choice(images, 10, replace=False) for c in chosen]
            for chosen in (random.choice(8, WAY, replace=False) for _ in range(episodes))
        ]
    )
    parts = np.split(rows, [SHOT, SHOT + QUERIES], axis=2)
    numbers = np.arange(len(values))
    return Features(numbers, numbers // images, values), Episodes(*parts)


@pytest.mark.parametrize("recipe", ["epnet", "net", "epnet-paper", "epnet-paper-literal"])
def test_episodes_with_unlabeled_images_are_solved_by_the_formulas(recipe):
    features, episodes = drawn(8)
    results = solve(features, episodes, Inference(settings(recipe)))
    expected = [place for place in range(WAY) for _ in range(QUERIES)]
    accuracies, losses = [], []
    for rows in zip(episodes.support, episodes.query, episodes.unlabeled, strict=True):
        points = np.concatenate([features.values[part.ravel()] for part in rows])
        logits, _ = brute_semi_supervised(points, settings(recipe))
        accuracies.append(np.mean(logits.argmax(1) == expected))
        losses.append(cross_entropy(logits, expected))
    assert 0.3 < np.mean(accuracies) < 0.97
    np.testing.assert_allclose(results.accuracies, accuracies, atol=1e-12)
    np.testing.assert_allclose(results.losses, losses, rtol=1e-3)


def test_the_unlabeled_images_of_an_episode_change_its_result():
    features, episodes = drawn(40)
    inference = Inference(settings())
    nothing = np.empty((40, WAY, 0), np.int64)
    without = Episodes(episodes.support, episodes.query, nothing)
    one, other = (solve(features, each, inference).accuracies for each in (episodes, without))
    assert (one != other).mean() > 0.3
