"""The cosine classifier: what it computes, and what cannot matter to it."""

import math

import pytest
import torch
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


def test_weights_start_at_the_authors_deviation_and_scale_and_weights_learn():
    torch.manual_seed(0)
    classifier = CosineClassifier(512, 389, 10)
    assert classifier.weight.std().item() == pytest.approx(math.sqrt(2 / 512), rel=0.01)
    assert classifier.scale.item() == 10
    assert sum(p.numel() for p in classifier.parameters()) == 389 * 512 + 1
    classifier(torch.randn(4, 512)).square().sum().backward()
    assert classifier.scale.grad.item() != 0
    assert classifier.weight.grad.abs().sum() > 0
