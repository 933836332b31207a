"""Cosines to class means, by the formula written as loops."""

import math

import numpy as np
import pytest
import torch

from epcore.classifiers.cosine_means import CosineMeans
from epcore.classifiers.episodes import EpisodeBatch


def unit(vector):
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


@pytest.mark.parametrize(("way", "shot"), [(5, 1), (3, 4)])
def test_scores_are_cosines_to_the_mean_of_support_of_unit_length(way, shot):
    points = np.random.default_rng(0).normal(0.2, 1, (2, way * shot + 3, 6))
    found = CosineMeans().scores(EpisodeBatch(torch.from_numpy(points), way, shot, 3)).numpy()
    for episode, scores in zip(points, found, strict=True):
        for q in range(3):
            query = unit(episode[way * shot + q])
            for k in range(way):
                images = [unit(episode[k * shot + i]) for i in range(shot)]
                mean = unit([sum(values) / shot for values in zip(*images, strict=True)])
                cosine = sum(a * b for a, b in zip(query, mean, strict=True))
                assert scores[q, k] == pytest.approx(10 * cosine, rel=1e-9)


def test_an_image_that_is_far_away_counts_no_more_than_another():
    """The mean of (1, 0) and (0, 1000) of unit length lies halfway between them."""
    points = torch.tensor([[1.0, 0], [0, 1000], [-1, 0], [-1, 0], [3, 3]], dtype=torch.float64)
    scores = CosineMeans().scores(EpisodeBatch(points, 2, 2, 1))
    assert scores[0].tolist() == pytest.approx([10, -10 / math.sqrt(2)])
