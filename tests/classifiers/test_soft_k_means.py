"""Soft k-means, balanced and masked too, by the formulas written as loops, and by hand."""

import math

import numpy as np
import pytest
import torch
from episode_batches import batch_of

from epcore.classifiers.balanced_soft_k_means import BalancedSoftKMeans
from epcore.classifiers.masked_soft_k_means import MaskedSoftKMeans
from epcore.classifiers.soft_k_means import SoftKMeans

QUERIES = 6


def features(way, shot, unlabeled, size=3, count=3):
    shape = (count, way * shot + QUERIES + unlabeled, size)
    return torch.from_numpy(np.random.default_rng(0).normal(0, 0.8, shape))


def softmax(values):
    odds = [math.exp(value) for value in values]
    return [each / sum(odds) for each in odds]


def squared(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def soft_weights(distances, method):
    """The weight of each class, from distances; both have a row for each image."""
    return [softmax([-method.scale * d for d in row]) for row in distances]


def balanced_weights(distances, method):
    weights = soft_weights(distances, method)
    sums = [sum(column) for column in zip(*weights, strict=True)]
    size = len(weights) / len(sums)
    return [[w / total * size for w, total in zip(row, sums, strict=True)] for row in weights]


def masked_weights(distances, method):
    means = [sum(column) / len(column) for column in zip(*distances, strict=True)]
    weights = soft_weights(distances, method)
    for row, near in zip(weights, distances, strict=True):
        for k, mean in enumerate(means):
            mask = 1 / (1 + math.exp(-(method.beta - near[k] / mean) * method.gamma))
            row[k] *= mask**method.mask_power
    return weights


def brute_scores(points, way, shot, method, weights_of):
    support, queries = points[: way * shot], points[way * shot :][:QUERIES]
    others = points[way * shot + QUERIES :]
    others = others if len(others) else queries
    classes = [support[k * shot : (k + 1) * shot] for k in range(way)]
    means = [images.mean(axis=0) for images in classes]
    for _ in range(method.steps):
        distances = [[squared(image, mean) for mean in means] for image in others]
        weights = weights_of(distances, method)
        means = [
            (images.sum(axis=0) + sum(w[k] * x for w, x in zip(weights, others, strict=True)))
            / (shot + sum(w[k] for w in weights))
            for k, images in enumerate(classes)
        ]
    return [[-method.scale * squared(image, mean) for mean in means] for image in queries]


METHODS = [
    (SoftKMeans(), soft_weights),
    (SoftKMeans(steps=3, scale=2.5), soft_weights),
    (BalancedSoftKMeans(preprocessing=()), balanced_weights),
    (BalancedSoftKMeans(preprocessing=(), steps=2, scale=0.5), balanced_weights),
    (MaskedSoftKMeans(), masked_weights),
    (MaskedSoftKMeans(mask_power=1), masked_weights),
    (MaskedSoftKMeans(steps=3, scale=2, beta=0.6, gamma=4), masked_weights),
]


@pytest.mark.parametrize(("method", "weights_of"), METHODS)
@pytest.mark.parametrize("unlabeled", [0, 7])
@pytest.mark.parametrize(("way", "shot"), [(3, 1), (2, 4)])
def test_scores_are_those_of_the_formulas(way, shot, unlabeled, method, weights_of):
    points = features(way, shot, unlabeled)
    found = method.scores(batch_of(points, way, shot, QUERIES))
    for episode, scores in zip(points.numpy(), found.numpy(), strict=True):
        expected = brute_scores(episode, way, shot, method, weights_of)
        np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8)


def on_a_line(method, *others):
    """Class means from support 0 and 2: scores of a query at 0 are minus their squares."""
    points = torch.tensor([0.0, 2, 0, *others], dtype=torch.float64)[:, None]
    scores = method.scores(batch_of(points, 2, 1, 1))
    return (-scores / method.scale).sqrt().flatten().tolist()


def test_an_image_midway_between_two_classes_by_hand():
    """It weighs 1/2 in each; where it is the only one its mask is sigmoid(1 - 1) = 1/2."""
    assert on_a_line(SoftKMeans(), 1) == pytest.approx([0.5 / 1.5, 2.5 / 1.5])
    once, twice = (MaskedSoftKMeans(gamma=3, mask_power=power) for power in (1, 2))
    assert on_a_line(once, 1) == pytest.approx([0.25 / 1.25, 2.25 / 1.25])
    assert on_a_line(twice, 1) == pytest.approx([0.125 / 1.125, 2.125 / 1.125])


def test_two_images_at_one_class_are_shared_between_clusters_of_one_size_by_hand():
    """Whatever the scale, they weigh 1 in each class together."""
    for scale in (0.1, 20):
        method = BalancedSoftKMeans(preprocessing=(), scale=scale)
        assert on_a_line(method, 0, 0) == pytest.approx([0, 1], abs=1e-7)


def test_masks_leave_out_what_is_far_from_all_classes():
    near, far = [0.1, 1.9, -0.1, 2.1] * 5, [60.0] * 2
    masked = MaskedSoftKMeans(beta=1, gamma=50)
    assert on_a_line(masked, *near, *far)[1] == pytest.approx(2, abs=0.05)
    assert on_a_line(SoftKMeans(), *near, *far)[1] > 8
