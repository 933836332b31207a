"""Attention by cosines, by the formula written as loops."""

import math

import numpy as np
import pytest
import torch

from epcore.classifiers.cosine_matching import CosineMatching
from epcore.classifiers.episodes import EpisodeBatch


def cosine(one, other):
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


@pytest.mark.parametrize("scale", [1, 10, 100])
@pytest.mark.parametrize(("way", "shot"), [(5, 1), (3, 4)])
def test_scores_are_the_logarithm_of_the_attention_of_each_class(way, shot, scale):
    points = np.random.default_rng(0).normal(0.2, 1, (2, way * shot + 3, 6))
    episodes = EpisodeBatch(torch.from_numpy(points), way, shot, 3)
    found = CosineMatching(scale=scale).scores(episodes).numpy()
    for episode, scores in zip(points, found, strict=True):
        for q in range(3):
            attention = [
                math.exp(scale * cosine(episode[way * shot + q], episode[i]))
                for i in range(way * shot)
            ]
            for k in range(way):
                share = sum(attention[k * shot : (k + 1) * shot]) / sum(attention)
                assert scores[q, k] == pytest.approx(math.log(share), rel=1e-9)


def test_a_query_between_two_classes_by_hand():
    """Cosines 1 and 0 to one image of each class: shares e^10 and 1; the default scale is 10."""
    points = torch.tensor([[2.0, 0], [0, 3], [5, 0]], dtype=torch.float64)
    (shares,) = CosineMatching().scores(EpisodeBatch(points, 2, 1, 1)).exp().tolist()
    assert shares == pytest.approx([math.exp(10) / (1 + math.exp(10)), 1 / (1 + math.exp(10))])


def test_the_least_share_of_a_large_scale_is_finite():
    points = torch.tensor([[1.0, 0], [-1, 0], [1, 0]])
    scores = CosineMatching(scale=1000).scores(EpisodeBatch(points, 2, 1, 1))
    assert scores.tolist() == [[0, -2000]]
