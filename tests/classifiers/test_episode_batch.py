"""Episodes of a wrong size are told before a classifier sees them."""

import pytest
import torch

from epcore.classifiers.episodes import EpisodeBatch


def test_sizes_that_do_not_add_up_are_told_with_both_readings():
    points = torch.rand(3, 80, 4)
    assert EpisodeBatch(points, way=5, shot=1, queries=75).unlabeled_points.shape == (3, 0, 4)
    taken = EpisodeBatch(points, way=5, shot=1, queries=15, unlabeled=60)
    assert torch.equal(taken.query, points[:, 5:20])
    assert torch.equal(taken.unlabeled_points, points[:, 20:])
    with pytest.raises(
        ValueError,
        match=r"has 80 images an episode, but 5 x 1 support images, 15 queries of all classes "
        r"together and 0 unlabeled images are 20; if the others are queries, give queries=75; if "
        r"they are unlabeled images, unlabeled=60$",
    ):
        EpisodeBatch(points, way=5, shot=1, queries=15)


@pytest.mark.parametrize(
    ("sizes", "advice"),
    [
        ({"queries": 76}, "give more points, or lower the numbers"),
        ({"queries": 15, "unlabeled": 61}, "if the others are queries, give queries=75; if they"),
    ],
)
def test_fewer_images_than_sizes_say_are_told(sizes, advice):
    with pytest.raises(ValueError, match=f"80 images an episode, but .* are 81; {advice}"):
        EpisodeBatch(torch.rand(3, 80, 4), way=5, shot=1, **sizes)


def test_all_sizes_but_the_unlabeled_images_may_be_given_by_place():
    with pytest.raises(TypeError):
        EpisodeBatch(torch.rand(3, 20, 4), 5, 1, 10, None, None, None, 5)
