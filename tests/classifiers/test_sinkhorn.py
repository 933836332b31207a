"""Balanced distributions, by Sinkhorn's algorithm in plain loops and by hand."""

import numpy as np
import pytest
import torch
from transport_reference import sinkhorn

from epcore.classifiers.solvers.sinkhorn import balanced


def drawn(scale, shape=(3, 6, 4)):
    return torch.from_numpy(np.random.default_rng(0).normal(0, scale, shape))


@pytest.mark.parametrize("scale", [0.1, 1, 6])
@pytest.mark.parametrize("counts", [[1.5, 1.5, 1.5, 1.5], [3, 2, 0.5, 0.5]])
def test_probabilities_are_those_of_scaled_rows_and_columns(scale, counts):
    logits = drawn(scale)
    found = balanced(logits, torch.tensor(counts, dtype=torch.float64)).exp()
    for each, plan in zip(logits.numpy(), found.numpy(), strict=True):
        np.testing.assert_allclose(plan, sinkhorn(np.exp(each), np.ones(6), counts), atol=1e-7)


def test_rows_count_as_much_in_the_sums_as_they_are_given():
    logits, rows = drawn(1), torch.tensor([1.0, 0, 2, 1, 0.5, 0])
    found = balanced(logits, torch.tensor([1.0, 1.5, 1, 1]), rows.expand(3, 6)).numpy()
    for each, plan in zip(logits.numpy(), found, strict=True):
        counting = rows.numpy() > 0
        sums = rows.numpy()[counting]
        expected = sinkhorn(np.exp(each[counting]), sums, [1, 1.5, 1, 1]) / sums[:, None]
        np.testing.assert_allclose(np.exp(plan[counting]), expected, atol=1e-7)
        # Other rows get the same offsets.
        offsets = plan - each
        offsets -= offsets[:, :1]
        np.testing.assert_allclose(offsets, np.broadcast_to(offsets[0], offsets.shape), atol=1e-9)


def test_two_rows_and_two_classes_by_hand():
    """In [[p, 1 - p], [1 - p, p]] the odds p / (1 - p) are the root of the ratio of products."""
    kernel = np.array([[3.0, 2], [0.5, 12]])
    odds = np.sqrt(3 * 12 / (2 * 0.5))
    p = odds / (1 + odds)
    found = balanced(torch.from_numpy(np.log(kernel)), 1).exp()
    np.testing.assert_allclose(found.numpy(), [[p, 1 - p], [1 - p, p]], atol=1e-8)


def test_counts_that_do_not_add_up_are_scaled():
    logits = drawn(1)
    torch.testing.assert_close(balanced(logits, 70), balanced(logits, 1.5))


@pytest.mark.parametrize("scale", [1, 100, 3000])
def test_classes_far_apart_are_balanced_too(scale):
    """6 rows near class 0, 2 near class 1: two must move, whatever that costs."""
    logits = -scale * torch.ones(8, 2, dtype=torch.float64)
    near = torch.linspace(0, 0.5, 8, dtype=torch.float64)
    logits[:6, 0], logits[6:, 1] = -scale * near[:6], -scale * near[6:]
    found = balanced(logits, 4)
    assert torch.isfinite(found).all()
    np.testing.assert_allclose(found.exp().sum(dim=-2).numpy(), [4, 4], atol=1e-7)
    if scale > 1:
        assert found.argmax(dim=-1).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_class_that_gets_nothing_keeps_finite_logarithms():
    found = balanced(drawn(1), torch.tensor([0.0, -1, 3, 3]))
    assert torch.isfinite(found).all()
    np.testing.assert_allclose(found.exp().sum(dim=-2).numpy(), [[0, 0, 3, 3]] * 3, atol=2e-6)


def test_each_set_of_rows_is_balanced_as_if_alone():
    logits = torch.cat([drawn(0.1), drawn(30)])
    together = balanced(logits.unflatten(0, (2, 3)), 1.5).flatten(0, 1)
    for each, plan in zip(logits, together, strict=True):
        torch.testing.assert_close(balanced(each, 1.5), plan, rtol=1e-12, atol=1e-12)


def test_logarithms_have_the_type_of_the_logits():
    logits = drawn(3)
    found = balanced(logits.float(), 1.5)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), balanced(logits, 1.5), rtol=1e-5, atol=1e-5)
