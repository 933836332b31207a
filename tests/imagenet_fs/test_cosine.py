"""The cosine classifier: what it computes, and what cannot matter to it."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from epcore.backbones.cosine import CosineClassifier, cosine_logits


def pairs(seed=0, n=7, classes=5, size=6):
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randn(rows, size, generator=generator, dtype=torch.float64) for rows in (n, classes)
    )


def test_logits_are_scipys_cosines_times_the_scale():
    features, weights = pairs()
    expected = 7.5 * (1 - cdist(features.numpy(), weights.numpy(), "cosine"))
    assert cosine_logits(features, weights, 7.5).numpy() == pytest.approx(expected)


@given(st.integers(0, 50), st.floats(0.01, 100), st.floats(0.01, 100))
def test_neither_norm_matters(seed, of_features, of_weights):
    features, weights = pairs(seed)
    logits = cosine_logits(features, weights, 3)
    scaled = cosine_logits(of_features * features, of_weights * weights, 3)
    assert torch.allclose(logits, scaled)


@given(st.integers(0, 50))
def test_a_rotation_of_both_changes_nothing_and_one_of_the_features_alone_does(seed):
    features, weights = pairs(seed)
    rotation = torch.linalg.qr(pairs(seed + 1, n=6)[0]).Q
    logits = cosine_logits(features, weights, 3)
    assert torch.allclose(cosine_logits(features @ rotation, weights @ rotation, 3), logits)
    assert not torch.allclose(cosine_logits(features @ rotation, weights, 3), logits)


def test_logits_lie_within_the_scale_and_reach_it_for_a_class_own_weight():
    features, weights = pairs()
    assert cosine_logits(features, weights, 4).abs().max() <= 4
    assert torch.allclose(cosine_logits(weights, weights, 4).diagonal(), torch.tensor(4.0).double())


def test_sets_of_episodes_do_not_mix():
    batches = [pairs(seed) for seed in (1, 2)]
    together = cosine_logits(*(torch.stack(part) for part in zip(*batches, strict=True)), 2)
    for one, batch in zip(together, batches, strict=True):
        assert torch.allclose(one, cosine_logits(*batch, 2))


def test_weights_start_at_the_authors_deviation_and_scale_and_weights_learn():
    torch.manual_seed(0)
    classifier = CosineClassifier(512, 389, 10)
    assert classifier.weight.std().item() == pytest.approx(math.sqrt(2 / 512), rel=0.01)
    assert classifier.scale.item() == 10
    assert sum(p.numel() for p in classifier.parameters()) == 389 * 512 + 1
    classifier(torch.randn(4, 512)).square().sum().backward()
    assert classifier.scale.grad.item() != 0
    assert classifier.weight.grad.abs().sum() > 0
