"""Prototypes: the class whose mean support embedding is nearest, by formulas written as loops."""

import math
from importlib import import_module

import numpy as np
import pytest
import torch

from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.prototypes import Prototypes


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def prototype_logits(support, query):
    """Logits `(..., Q, way)` from support `(..., way, shot, D)` and query `(..., Q, D)`."""
    way, shot = support.shape[-3:-1]
    points = torch.cat([support.flatten(-3, -2), query], dim=-2)
    return Prototypes().scores(EpisodeBatch(points, way, shot, query.shape[-2]))


def brute_logits(support, query):
    """-|q - mean of the class's support|^2 / sqrt(D), one number at a time."""
    way, shot, size = support.shape
    logits = np.zeros((len(query), way))
    for q in range(len(query)):
        for c in range(way):
            total = 0.0
            for d in range(size):
                mean = math.fsum(support[c, s, d] for s in range(shot)) / shot
                total += (query[q, d] - mean) ** 2
            logits[q, c] = -total / math.sqrt(size)
    return logits


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("way", "shot", "size"), [(5, 1, 8), (3, 4, 2), (2, 5, 64), (4, 2, 1)])
def test_logits_are_the_negative_squared_distances_to_the_class_means(way, shot, size, dtype):
    support, query = normal(way, shot, size, seed=1), normal(7, size, seed=2)
    actual = prototype_logits(support.to(dtype), query.to(dtype))
    assert actual.dtype == dtype
    expected = brute_logits(support.numpy(), query.numpy())
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(actual.double().numpy(), expected, rtol=tolerance, atol=tolerance)


def test_two_classes_on_a_line_by_hand():
    """Means 1 and 6 in 1 of 4 dimensions: the squares 4 and 9, halved by sqrt(4)."""
    along = torch.tensor([1.0, 0, 0, 0])
    support = torch.tensor([[0.0, 2.0], [5.0, 7.0]])[..., None] * along
    logits = prototype_logits(support, 3 * along[None])
    assert logits.tolist() == [[-2.0, -4.5]]


# -- SimpleShot is prototypes of features that are centered and of unit length -----------------


@pytest.mark.parametrize(
    ("variant", "shot"), [("prototypes", 1), ("prototypes", 5), ("L2N", 1), ("CL2N", 1)]
)
def test_predictions_are_those_of_easyfsl(variant, shot):
    """Its ProtoNet and its SimpleShot, which has cosines: with one shot they rank as distances."""
    import_module("epcore.vision")  # before torchvision, which easyfsl imports
    from easyfsl.methods import PrototypicalNetworks, SimpleShot

    way, queries, size = 4, 30, 16
    points = 2 + normal(8, way * shot + queries, size).float()
    base_mean = 1.9 + 0.1 * normal(size, seed=1).float()
    kinds = {
        "prototypes": (PrototypicalNetworks, (), {}),
        "L2N": (SimpleShot, ("unit",), {"feature_normalization": 2}),
        "CL2N": (
            SimpleShot,
            ("center-base", "unit"),
            {"feature_centering": base_mean, "feature_normalization": 2},
        ),
    }
    method, preprocessing, settings = kinds[variant]
    episodes = EpisodeBatch(points, way, shot, queries, base_mean)
    found = Prototypes(preprocessing=preprocessing).scores(episodes).argmax(dim=-1)
    theirs = method(torch.nn.Identity(), **settings)
    labels = torch.arange(way).repeat_interleave(shot)
    for episode, predicted in zip(points, found, strict=True):
        theirs.process_support_set(episode[: way * shot], labels)
        scores = theirs(episode[way * shot :])
        assert torch.equal(scores.argmax(dim=-1), predicted)
