"""A cosine layer trained on the support, by automatic gradients and descent written out."""

import pytest
import torch
from drawn_reference import Descent, drawn_by_a_head, episodes_of
from torch.nn import functional

from epcore.classifiers.baseline_plus_plus import BaselinePlusPlus
from epcore.classifiers.episodes import EpisodeBatch

QUERIES, EPOCHS = 5, 7


def brute(points, way, shot, number, class_norm, scale=2.0, rate=0.01):
    """Weight normalization as torch's own function, or weights divided before each step."""
    support, classes, weights, orders = drawn_by_a_head(points, way, shot, number, EPOCHS, 0)
    support = support / support.norm(dim=1, keepdim=True)
    directions = weights.clone().requires_grad_()
    lengths = directions.detach().norm(dim=1, keepdim=True).requires_grad_()
    parameters = [directions, lengths] if class_norm else [directions]
    descent = Descent(parameters, rate, dampening=0.9, decay=0.001)

    def outputs(inputs):
        if class_norm:
            return scale * functional.linear(inputs, torch._weight_norm(directions, lengths, 0))
        directions.data /= directions.data.norm(dim=1, keepdim=True)
        return scale * functional.linear(inputs, directions)

    for order in orders:
        for first in range(0, len(order), 4):
            rows = order[first : first + 4]
            labels = torch.tensor([row // shot for row in rows])
            descent.step(functional.cross_entropy(outputs(support[rows]), labels))
    query = points[way * shot :]
    scores = torch.zeros(QUERIES, way, dtype=torch.float64)
    scores[:, classes] = outputs(query / query.norm(dim=1, keepdim=True)).detach()
    return scores


@pytest.mark.parametrize("changes", [{}, {"rate": 0.5}, {"scale": 10.0}])
@pytest.mark.parametrize("class_norm", [True, False])
@pytest.mark.parametrize(("way", "shot"), [(5, 1), (3, 3)])
def test_scores_are_those_of_descent_written_out(way, shot, class_norm, changes):
    points = episodes_of(way, shot, QUERIES, 6)
    settings = {{"rate": "learning_rate"}.get(key, key): value for key, value in changes.items()}
    episodes = EpisodeBatch(points, way, shot, QUERIES, numbers=torch.tensor([7, 3]))
    found = BaselinePlusPlus(epochs=EPOCHS, class_norm=class_norm, **settings).scores(episodes)
    for each, number, scores in zip(points, (7, 3), found, strict=True):
        expected = brute(each, way, shot, number, class_norm, **changes)
        torch.testing.assert_close(scores, expected)


def test_without_the_norm_of_classes_scores_are_cosines_times_the_scale():
    episodes = EpisodeBatch(episodes_of(3, 2, QUERIES, 6), 3, 2, QUERIES)
    scores = BaselinePlusPlus(class_norm=False, scale=3).scores(episodes)
    assert scores.abs().max() <= 3
    assert scores.abs().max() > 1


def test_the_length_of_images_does_not_matter():
    points = episodes_of(3, 2, QUERIES, 6)
    lengths = torch.linspace(0.5, 3, points.shape[1], dtype=torch.float64)[:, None]
    one, other = (
        BaselinePlusPlus(epochs=1, preprocessing=("unit",)).scores(
            EpisodeBatch(each, 3, 2, QUERIES)
        )
        for each in (points, points * lengths)
    )
    torch.testing.assert_close(one, other)
