"""Classes with unequal numbers of support images, in every classifier that takes them."""

from dataclasses import replace

import pytest
import torch
from test_invariants import ALL, close

from epcore.classifiers import EpisodeBatch, Prototypes

SHOTS, QUERIES, SIZE = (1, 4, 2), 9, 6
TAKING = {name: each for name, each in ALL.items() if not each.needs.equal_shots}


def features(shots, apart=False, seed=0, queries=QUERIES, size=SIZE):
    """Three episodes around centers of their classes, in directions apart or at random."""
    random = torch.Generator().manual_seed(seed)
    way = len(shots)
    labels = torch.cat(
        [torch.arange(way).repeat_interleave(torch.tensor(shots)), torch.arange(queries) % way]
    )
    centers = torch.rand((3, way, size), generator=random, dtype=torch.float64)
    if apart:
        centers = 5 * torch.eye(size, dtype=torch.float64)[:way].expand(3, -1, -1)
    noise = torch.randn((3, len(labels), size), generator=random, dtype=torch.float64)
    return (1 + 2 * centers[:, labels] + 0.3 * noise).relu()


def batch(points, shots):
    random = torch.Generator().manual_seed(1)
    return EpisodeBatch(
        points,
        len(shots),
        shots,
        QUERIES,
        base_mean=torch.full((SIZE,), 1.9, dtype=torch.float64),
        base_weights=torch.randn((7, SIZE), generator=random, dtype=torch.float64),
    )


@pytest.mark.parametrize("name", TAKING)
def test_another_order_of_the_classes_gives_the_same_scores_in_that_order(name):
    points, order = features(SHOTS), (2, 0, 1)
    support = points[:, : sum(SHOTS)].split(SHOTS, dim=1)
    moved = torch.cat([*(support[k] for k in order), points[:, sum(SHOTS) :]], dim=1)
    expected = TAKING[name].scores(batch(points, SHOTS))[..., list(order)]
    found = TAKING[name].scores(batch(moved, tuple(SHOTS[k] for k in order)))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_equal_numbers_give_the_bytes_of_one_number(name):
    points = features((2, 2, 2))
    one = ALL[name].scores(batch(points, (2, 2, 2)))
    assert torch.equal(one, ALL[name].scores(replace(batch(points, (2, 2, 2)), shot=2)))


@pytest.mark.parametrize("name", TAKING)
def test_classes_that_lie_apart_are_told_apart_whatever_their_numbers(name):
    """Logistic regression is regularized, and takes one image beside four for the rarer class."""
    shots = (2, 4, 3) if name in ("logistic-regression", "self-training") else SHOTS
    scores = TAKING[name].scores(batch(features(shots, apart=True), shots))
    labels = torch.arange(QUERIES) % len(SHOTS)
    assert (scores.argmax(dim=-1) == labels).all()


@pytest.mark.parametrize("name", sorted(ALL.keys() - TAKING.keys()))
def test_a_classifier_that_draws_classes_of_one_size_says_so(name):
    with pytest.raises(
        ValueError, match="takes as many support images of each class, and is given"
    ):
        ALL[name].scores(batch(features(SHOTS), SHOTS))


def test_class_means_and_labels_are_those_of_a_loop():
    points = features(SHOTS)
    episodes = batch(points, SHOTS)
    first = 0
    for k, shot in enumerate(SHOTS):
        images = points[:, first : first + shot]
        close(episodes.class_means[:, k], sum(images.unbind(1)) / shot)
        assert (episodes.support_labels[first : first + shot].argmax(dim=1) == k).all()
        by_class = episodes.by_class(points[:, : sum(SHOTS), 0])
        assert torch.equal(by_class[:, k, :shot], images[..., 0])
        assert (by_class[:, k, shot:] == -torch.inf).all()
        first += shot


def test_prototypes_are_the_means_of_unequal_classes():
    points = features(SHOTS)
    episodes = batch(points, SHOTS)
    differences = episodes.query[:, :, None] - episodes.class_means[:, None]
    close(Prototypes().scores(episodes), -differences.square().sum(-1) / SIZE**0.5)


def test_a_class_with_one_image_beside_one_with_fifty_keeps_its_queries():
    """Label propagation is balanced where supports are unequal."""
    shots, queries = (1, 50), 60
    points = features(shots, queries=queries)
    points[:, 0, 0] += 8
    points[:, 51::2, 0] += 8
    scores = ALL["label-propagation"].scores(EpisodeBatch(points, 2, shots, queries))
    assert (scores.argmax(dim=-1) == torch.arange(queries) % 2).double().mean() > 0.95


@pytest.mark.parametrize("shot", [(1, 2), (1, 0, 2), 0])
def test_a_class_without_images_is_told(shot):
    with pytest.raises(ValueError, match="give one or more images for each of 3 classes"):
        EpisodeBatch(torch.zeros(3, 4), 3, shot, 1)
