"""What is done to features first: each step by numpy, and in the order that is asked for."""

import numpy as np
import pytest
import torch
from episode_batches import batch_of
from pydantic import ValidationError

from epcore.classifiers.preprocessing import preprocessed
from epcore.classifiers.prototypes import Prototypes

WAY, SHOT, QUERIES, UNLABELED, SIZE = 3, 2, 7, 5, 4
MEAN = np.array([0.3, 0.1, 0.9, 0.5])


def episodes(negative=False):
    shape = (2, WAY * SHOT + QUERIES + UNLABELED, SIZE)
    points = np.random.default_rng(0).normal(1, 1, shape)
    points = points if negative else np.abs(points)
    return batch_of(torch.from_numpy(points), WAY, SHOT, QUERIES, torch.from_numpy(MEAN))


def split(points):
    parts = np.split(points, [WAY * SHOT, WAY * SHOT + QUERIES], axis=1)
    return np.concatenate([part - part.mean(axis=1, keepdims=True) for part in parts], axis=1)


EXPECTED = {
    "power": lambda points: np.sqrt(points + 1e-6),
    "signed-power": lambda points: np.where(points < 0, -1, 1) * np.sqrt(np.abs(points) + 1e-6),
    "center-base": lambda points: points - MEAN,
    "center-episode": lambda points: points - points.mean(axis=1, keepdims=True),
    "center-split": split,
    "unit": lambda points: points / np.sqrt((points**2).sum(axis=2, keepdims=True)),
}


@pytest.mark.parametrize("step", EXPECTED)
def test_a_step_is_what_its_name_says(step):
    batch = episodes(negative=step != "power")
    found = preprocessed((step,), batch)
    np.testing.assert_allclose(found.numpy(), EXPECTED[step](batch.points.numpy()), rtol=1e-12)


def test_a_signed_root_of_zero_is_that_of_a_millionth():
    """Of minus zero too, as in iLPC's code: only what is below zero is turned round."""
    points = torch.zeros(1, 18, SIZE)
    points[..., 0], points[..., 1], points[..., 2] = -0.0, 4 - 1e-6, -(9 - 1e-6)
    found = preprocessed(("signed-power",), batch_of(points, WAY, SHOT, QUERIES))
    expected = torch.tensor([1e-3, 2, -3, 1e-3]).expand_as(points)
    torch.testing.assert_close(found, expected)


def test_steps_are_taken_in_their_order():
    batch = episodes()
    steps = ("power", "unit", "center-split", "unit")
    expected = batch.points.numpy()
    for step in steps:
        expected = EXPECTED[step](expected)
    np.testing.assert_allclose(preprocessed(steps, batch).numpy(), expected, rtol=1e-10)


def test_a_root_of_a_negative_feature_is_refused_but_not_of_a_rounded_zero():
    with pytest.raises(ValueError, match="takes no negative features"):
        preprocessed(("power",), episodes(negative=True))
    points = torch.full((1, 18, SIZE), 400.0)
    points[..., 0] = -1e-5
    found = preprocessed(("power",), batch_of(points, WAY, SHOT, QUERIES))
    expected = torch.full_like(points, 20.0)
    expected[..., 0] = 1e-3
    torch.testing.assert_close(found, expected)


def test_a_base_mean_is_needed_and_is_that_of_features_themselves():
    without = batch_of(episodes().points, WAY, SHOT, QUERIES)
    with pytest.raises(ValueError, match="takes the mean of the base images"):
        preprocessed(("center-base",), without)
    with pytest.raises(ValidationError, match="center-base comes first"):
        Prototypes(preprocessing=("unit", "center-base"))
    with pytest.raises(ValidationError, match="power comes before centering"):
        Prototypes(preprocessing=("center-base", "power"))


def test_a_classifier_that_centers_on_its_queries_is_transductive():
    """By split it assumes too that support and queries are of the classes in the same parts."""
    split, episode, unit = (
        Prototypes(preprocessing=(step,)) for step in ("center-split", "center-episode", "unit")
    )
    assert (split.transductive, split.balanced) == (True, True)
    assert (episode.transductive, episode.balanced) == (True, False)
    assert (unit.transductive, unit.balanced) == (False, False)
