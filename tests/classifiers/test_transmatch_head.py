"""TransMatch's last layer, by automatic gradients of the loss of explicit mixtures."""

import numpy as np
import pytest
import torch
from drawn_reference import Descent, by_content, episodes_of, support_by_content
from episode_batches import batch_of
from torch.nn import functional

from epcore.classifiers.transmatch_head import TransMatchHead

WAY, QUERIES, STEPS = 3, 5, 6


def unit(points):
    return points / points.norm(dim=-1, keepdim=True)


def brute(
    points,
    shot,
    number,
    scale=10.0,
    temperature=0.5,
    mixup=0.75,
    unlabeled_weight=5.0,
    learning_rate=0.001,
):
    n = WAY * shot
    rows, classes = support_by_content(points[:n], WAY, shot)
    query = unit(points[n : n + QUERIES])
    pool = points[n + QUERIES :] if len(points) > n + QUERIES else points[n : n + QUERIES]
    images = torch.cat([unit(points[rows]), unit(pool[by_content(pool)[0]])])
    means = [images[k * shot : (k + 1) * shot].mean(dim=0) for k in range(WAY)]
    weights = unit(torch.stack(means)).requires_grad_()
    descent = Descent([weights], learning_rate)
    random = np.random.default_rng(number)
    labeled = random.integers(0, n, (STEPS, 16))
    unlabeled = random.integers(n, len(images), (STEPS, 32))
    orders = random.random((STEPS, 48)).argsort(axis=1)
    shares = random.beta(mixup, mixup, (STEPS, 1))[:, 0]
    for step in range(STEPS):
        share = max(shares[step], 1 - shares[step])
        batch = images[np.concatenate([labeled[step], unlabeled[step]])]
        guesses = functional.softmax(scale * batch[16:] @ weights.T, dim=1).detach()
        sharp = guesses ** (1 / temperature)
        known = functional.one_hot(torch.from_numpy(labeled[step]) // shot, WAY)
        targets = torch.cat([known.double(), sharp / sharp.sum(dim=1, keepdim=True)])
        order = orders[step]
        mixed = unit(share * batch + (1 - share) * batch[order])
        wanted = share * targets + (1 - share) * targets[order]
        outputs = scale * mixed @ weights.T
        logs, probabilities = outputs.log_softmax(dim=1), outputs.softmax(dim=1)
        entropy = -(wanted[:16] * logs[:16]).sum() / 16
        error = ((probabilities[16:] - wanted[16:]) ** 2).mean()
        descent.step(entropy + unlabeled_weight * error)
        weights.data /= weights.data.norm(dim=1, keepdim=True)
    scores = torch.zeros(QUERIES, WAY, dtype=torch.float64)
    scores[:, classes] = (scale * query @ weights.T).detach()
    return scores


CHANGES = [
    {},
    {"learning_rate": 0.1},
    {"scale": 3.0},
    {"temperature": 1.5},
    {"mixup": 5.0},
    {"unlabeled_weight": 50.0},
]


@pytest.mark.parametrize(
    ("shot", "unlabeled", "changes"),
    [(1, 0, {}), (3, 0, {}), *((3, 7, changes) for changes in CHANGES)],
)
def test_scores_are_those_of_the_loss_with_explicit_mixtures(shot, unlabeled, changes):
    points = episodes_of(WAY, shot, QUERIES, 6, unlabeled=unlabeled)
    episodes = batch_of(points, WAY, shot, QUERIES, numbers=torch.tensor([7, 3]))
    found = TransMatchHead(steps=STEPS, **changes).scores(episodes)
    for each, number, scores in zip(points, (7, 3), found, strict=True):
        expected = brute(each, shot, number, **changes)
        torch.testing.assert_close(scores, expected, rtol=1e-9, atol=1e-9)


def test_it_starts_at_the_class_means_of_unit_features():
    points = episodes_of(WAY, 3, QUERIES, 6)
    found = TransMatchHead(steps=1, learning_rate=1e-12).scores(batch_of(points, WAY, 3, QUERIES))
    means = unit(unit(points[:, :9]).unflatten(1, (WAY, 3)).mean(dim=2))
    expected = 10 * unit(points[:, 9:]) @ means.mT
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def test_opposite_features_give_finite_scores():
    points = torch.tensor([[1.0, 0], [-1, 0], [1, 0], [-1, 0]])
    scores = TransMatchHead(steps=20).scores(batch_of(points, 2, 1, 2))
    assert torch.isfinite(scores).all()
    assert scores.argmax(dim=-1).tolist() == [0, 1]
