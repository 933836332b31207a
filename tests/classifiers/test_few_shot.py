"""`FewShotClassifier`: fit and predict, whatever the labels are and however many of each."""

import doctest

import numpy as np
import pytest
import torch

from epcore import EmbeddingPropagation
from epcore.classifiers import (
    TIM,
    BaselinePlusPlus,
    EpisodeBatch,
    FewShotClassifier,
    NotFittedError,
    Prototypes,
    Ridge,
    SoftKMeans,
    few_shot,
)

CENTERS = np.array([[0.0, 0, 4], [4, 0, 0], [0, 4, 0]])
LABELS = np.array([2, 0, 0, 1, 2, 0, 0])


def around(labels, seed=0):
    noise = np.random.default_rng(seed).normal(0, 0.5, (len(labels), 3))
    return CENTERS[np.asarray(labels)] + noise


def test_the_example_of_its_docstring_runs():
    found = doctest.testmod(few_shot)
    assert (found.failed, found.attempted > 0) == (0, True)


@pytest.mark.parametrize(
    "names", [np.array(["cat", "ant", "bee"]), np.array([-7, 100, 3]), np.array([True, False])]
)
def test_labels_are_texts_or_numbers_in_any_order(names):
    labels = LABELS % len(names)
    model = FewShotClassifier(Prototypes()).fit(around(labels), names[labels])
    assert model.classes_.tolist() == sorted(names.tolist())
    queries = np.arange(12) % len(names)
    assert model.predict(around(queries, 1)).tolist() == names[queries].tolist()
    probabilities = model.predict_proba(around(queries, 1))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert model.classes_[probabilities.argmax(axis=1)].tolist() == names[queries].tolist()


def test_the_scores_are_those_of_the_episode_with_its_classes_in_turn():
    queries = torch.as_tensor(around(np.arange(6) % 3, 1))
    for classifier in (Ridge(), TIM(steps=20), SoftKMeans()):
        model = FewShotClassifier(classifier).fit(around(LABELS), LABELS)
        order = np.argsort(LABELS, kind="stable")
        points = torch.cat([torch.as_tensor(around(LABELS)[order]), queries])
        expected = classifier.scores(EpisodeBatch(points[None], 3, (4, 1, 2), 6))[0]
        assert torch.equal(model.scores(queries), expected)
        assert model.transductive == classifier.transductive


def test_embeddings_are_propagated_over_support_queries_and_unlabeled_together():
    propagate = EmbeddingPropagation()
    model = FewShotClassifier(SoftKMeans(), propagate).fit(around(LABELS), LABELS)
    assert model.transductive
    queries, unlabeled = around([0, 1, 2], 1), around([0, 1, 2, 2], 2)
    order = np.argsort(LABELS, kind="stable")
    points = torch.as_tensor(np.concatenate([around(LABELS)[order], queries, unlabeled]))
    expected = SoftKMeans().scores(
        EpisodeBatch(propagate(points[None]), 3, (4, 1, 2), 3, unlabeled=4)
    )[0]
    assert torch.equal(model.scores(queries, unlabeled), expected)


def test_random_draws_are_those_of_the_random_state():
    labels = [0, 0, 1, 1, 2, 2]
    scores = [
        FewShotClassifier(BaselinePlusPlus(), random_state=state)
        .fit(around(labels), labels)
        .scores(around(labels, 1))
        for state in (1, 1, 2)
    ]
    assert torch.equal(scores[0], scores[1])
    assert not torch.equal(scores[0], scores[2])


@pytest.mark.parametrize(
    ("support", "labels", "said"),
    [
        (around([0, 1]), [0], "2 features, labels have the shape"),
        (around([0, 0]), ["a", "a"], "labels have one class"),
        (np.full((2, 3), np.nan), [0, 1], "support: a value is not finite; leave out its row"),
        (np.zeros(3), [0, 1, 2], r"support must have the shape \(n, D\)"),
        (np.zeros((0, 3)), [], r"support must have the shape \(n, D\)"),
    ],
)
def test_a_support_that_does_not_fit_is_told(support, labels, said):
    with pytest.raises(ValueError, match=said):
        FewShotClassifier(Prototypes()).fit(support, labels)


def test_queries_that_do_not_fit_are_told():
    model = FewShotClassifier(Prototypes())
    with pytest.raises(NotFittedError, match="call fit first"):
        model.predict(around([0]))
    model.fit(around(LABELS), LABELS)
    with pytest.raises(ValueError, match="queries have 2 dimensions, the support has 3"):
        model.predict(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="prototypes takes no unlabeled images"):
        model.predict(around([0]), unlabeled=around([1]))
    unequal = FewShotClassifier(BaselinePlusPlus()).fit(around(LABELS), LABELS)
    with pytest.raises(ValueError, match="as many support images of each class"):
        unequal.predict(around([0]))
