"""The layer of Batch SGM's low-shot phase: its steps written out, what it draws, what it learns."""

import numpy as np
import pytest
import torch

from epcore.generators.base import Task
from epcore.generators.config import LinearLayer
from epcore.generators.linear_layer import BaseImages, LinearLayerGenerator

AUTHORS = {"iterations": 10, "batch_size": 10, "learning_rate": 1, "momentum": 0.9,
           "weight_decay": 1e-3}  # fmt: skip


def weights_of(base, classes, exemplars, trials=(0,), seed=0, base_classes=3, **changes):
    """Weights of a test's trials, whose exemplars are `(trials, n, K, D)`; in float64."""
    settings = LinearLayer(kind="linear-layer", **AUTHORS | changes)
    images = BaseImages(torch.as_tensor(base).double(), torch.as_tensor(classes))
    generator = LinearLayerGenerator(settings, images, seed)
    positions = torch.arange(base_classes).expand(len(trials), -1)
    task = Task(positions, torch.as_tensor(exemplars).double(), trials)
    with torch.no_grad():
        return generator(task).numpy()


def beginning(*arguments, **keywords):
    """Weights that are not moved."""
    return weights_of(*arguments, **keywords | {"learning_rate": 1e-300})


@pytest.mark.parametrize(
    "changes",
    [{}, {"momentum": 0}, {"momentum": 0.5, "learning_rate": 0.3}, {"weight_decay": 0.1}],
)
def test_the_steps_are_those_of_sgd_whose_dampening_is_its_momentum(changes):
    """With one image of either kind every batch is the same: two of base, three of novel."""
    rng = np.random.default_rng(0)
    base, exemplar = rng.normal(size=(2, 4))
    given = (base[None], [1], exemplar[None, None, None])
    settings = AUTHORS | {"batch_size": 5, "iterations": 12} | changes
    first = beginning(*given, **settings)[0]
    expected = sgd(first, [base] * 2 + [exemplar] * 3, [1] * 2 + [3] * 3, settings)
    found = weights_of(*given, **settings)[0]
    assert np.abs(expected - first).max() > 0.05
    np.testing.assert_allclose(found, expected, atol=1e-12)


def sgd(weights, images, classes, settings):
    """One image and one class at a time; the formula of torch.optim.SGD's documentation."""
    weights, buffer = weights.copy(), None
    momentum = settings["momentum"]
    for _ in range(settings["iterations"]):
        gradient = settings["weight_decay"] * weights
        for image, right in zip(images, classes, strict=True):
            scores = weights[:, :-1] @ image + weights[:, -1]
            powers = np.exp(scores - scores.max())
            for number, probability in enumerate(powers / powers.sum()):
                error = (probability - (number == right)) / len(images)
                gradient[number] += error * np.append(image, 1)
        buffer = gradient if buffer is None else momentum * buffer + (1 - momentum) * gradient
        weights -= settings["learning_rate"] * buffer
    return weights


def test_the_beginning_is_that_of_a_linear_layer():
    first = beginning(np.zeros((1, 25)), [0], np.zeros((2, 300, 1, 25)), (0, 1))
    assert np.abs(first).max() <= 0.2
    assert first.std() == pytest.approx(0.2 / np.sqrt(3), rel=0.02)
    assert not np.isclose(*first).any()


def test_a_batch_has_base_and_novel_images_in_proportion_to_their_classes():
    """Features are zero, so the first gradient of a bias is a probability less a frequency.

    Of three base classes one has no image; one has a single image, the other three.
    """
    given = (np.zeros((4, 1)), [0, 2, 2, 2], np.zeros((1, 5, 2, 1)))
    changes = {"batch_size": 28_000, "iterations": 1, "weight_decay": 0}
    first = beginning(*given, **changes)[0, :, -1]
    moved = weights_of(*given, **changes)[0, :, -1] - first
    frequencies = moved + np.exp(first) / np.exp(first).sum()
    assert frequencies[1] == pytest.approx(0, abs=1e-12)
    assert frequencies[:3].sum() == pytest.approx(2 / 7)
    assert frequencies[2] / frequencies[0] == pytest.approx(3, rel=0.1)
    np.testing.assert_allclose(frequencies[3:], 1 / 7, rtol=0.1)


def random_given(trials, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(8, 6)), rng.integers(3, size=8), rng.normal(size=(trials, 4, 2, 6))


def test_trials_together_have_the_weights_that_each_has_alone():
    base, classes, exemplars = random_given(3)
    together = weights_of(base, classes, exemplars, (4, 5, 6))
    assert together.shape == (3, 3 + 4, 6 + 1)
    for trial, alone in ((6, exemplars[2:]), (4, exemplars[:1])):
        found = weights_of(base, classes, alone, (trial,))[0]
        np.testing.assert_allclose(found, together[trial - 4], atol=1e-12)


def test_draws_are_of_the_seed_k_and_the_trial():
    base, classes, exemplars = random_given(1)
    same = weights_of(base, classes, exemplars, (2,))
    assert np.array_equal(same, weights_of(base, classes, exemplars, (2,)))
    # Each exemplar twice is the same data, but another K.
    others = {
        "seed": weights_of(base, classes, exemplars, (2,), seed=1),
        "trial": weights_of(base, classes, exemplars, (3,)),
        "K": weights_of(base, classes, exemplars.repeat(2, axis=2), (2,)),
    }
    for name, weights in others.items():
        assert not np.isclose(weights, same).all(axis=-1).any(), name


@pytest.mark.parametrize("shuffled", [False, True])
def test_separable_classes_are_learned_and_shuffled_labels_are_chance(shuffled):
    """The bias too: each class lies around a point, and all points lie far from the origin."""
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(20, 16)) + 2
    images = centers.repeat(30, axis=0) + 0.1 * rng.normal(size=(600, 16))
    labels = np.arange(20).repeat(30)
    novel = images[labels >= 12].reshape(8, 30, 16)
    base, classes = images[labels < 12], labels[labels < 12]
    exemplars = novel[:, :5]
    if shuffled:
        exemplars = rng.permutation(exemplars.reshape(40, 16)).reshape(8, 5, 16)
        classes = rng.permutation(classes)
    changes = {"iterations": 400, "batch_size": 100, "base_classes": 12}
    weights = torch.from_numpy(weights_of(base, classes, exemplars[None], **changes)[0])
    settings = LinearLayer(kind="linear-layer", **AUTHORS)
    generator = LinearLayerGenerator(settings, BaseImages(weights[:, :-1], torch.arange(20)), 0)
    queries = torch.from_numpy(novel[:, 5:].reshape(-1, 16))
    scores = generator.logits(queries, weights)
    by_hand = queries @ weights[:, :-1].T + weights[:, -1]
    assert torch.allclose(scores, by_hand)
    accuracy = (scores[:, 12:].argmax(dim=1).numpy() == np.arange(8).repeat(25)).mean()
    if shuffled:
        assert accuracy < 0.35
    else:
        assert accuracy > 0.99
        assert (scores.argmax(dim=1) >= 12).double().mean() > 0.99
