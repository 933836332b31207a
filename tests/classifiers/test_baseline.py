"""A linear layer trained on the support, by automatic gradients and descent written out."""

import pytest
import torch
from drawn_reference import Descent, drawn_by_a_head, episodes_of
from torch.nn import functional

from epcore.classifiers.baseline import Baseline
from epcore.classifiers.episodes import EpisodeBatch

QUERIES, EPOCHS = 5, 7


def brute(points, way, shot, number, batch=4, rate=0.01, decay=0.001):
    support, classes, weights, orders = drawn_by_a_head(points, way, shot, number, EPOCHS, 1)
    matrix, bias = (part.clone().requires_grad_() for part in (weights[:, :-1].T, weights[:, -1]))
    descent = Descent([matrix, bias], rate, dampening=0.9, decay=decay)
    for order in orders:
        for first in range(0, len(order), batch):
            rows = order[first : first + batch]
            labels = torch.tensor([row // shot for row in rows])
            descent.step(functional.cross_entropy(support[rows] @ matrix + bias, labels))
    scores = torch.zeros(QUERIES, way, dtype=torch.float64)
    scores[:, classes] = (points[way * shot :] @ matrix + bias).detach()
    return scores


@pytest.mark.parametrize("changes", [{}, {"rate": 0.5}, {"decay": 0.3}, {"batch": 2}])
@pytest.mark.parametrize(("way", "shot"), [(5, 1), (3, 3)])
def test_scores_are_those_of_descent_written_out(way, shot, changes):
    points = episodes_of(way, shot, QUERIES, 6)
    names = {"rate": "learning_rate", "decay": "weight_decay", "batch": "batch_size"}
    settings = {names[key]: value for key, value in changes.items()}
    episodes = EpisodeBatch(points, way, shot, QUERIES, numbers=torch.tensor([7, 3]))
    found = Baseline(epochs=EPOCHS, **settings).scores(episodes)
    for each, number, scores in zip(points, (7, 3), found, strict=True):
        torch.testing.assert_close(scores, brute(each, way, shot, number, **changes))


def test_the_number_of_an_episode_seeds_its_weights():
    points = episodes_of(3, 2, QUERIES, 6, count=1).expand(3, -1, -1)
    numbers = torch.tensor([1, 2, 1])
    one, two, again = Baseline(epochs=3).scores(
        EpisodeBatch(points, 3, 2, QUERIES, numbers=numbers)
    )
    assert torch.equal(one, again)
    assert not torch.allclose(one, two, atol=0.01)
