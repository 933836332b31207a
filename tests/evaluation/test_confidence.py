"""Calibration error and AUROC, against sums written out and scikit-learn."""

import doctest

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from epcore.evaluation import confidence
from epcore.evaluation.confidence import auroc, calibration_error


def test_examples():
    assert doctest.testmod(confidence).failed == 0


def test_calibration_error_is_the_weighted_gap_of_fifteen_bins():
    random = np.random.default_rng(0)
    sure = np.append(random.uniform(0.2, 1, (40, 25)).ravel(), [1, 1, 3 / 15, 3 / 15])
    right = random.uniform(size=sure.shape) < sure**2
    expected = 0.0
    for number in range(15):
        inside = (sure > number / 15) & (sure <= (number + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    assert calibration_error(sure, right) == pytest.approx(expected)
    assert 0.05 < expected < 0.3


def test_auroc_is_scikit_learns_with_ties_too():
    random = np.random.default_rng(0)
    known, unknown = random.integers(0, 9, (5, 30)) / 9, random.integers(0, 7, (5, 12)) / 9
    for found, ours, theirs in zip(auroc(known, unknown), known, unknown, strict=True):
        expected = roc_auc_score([1] * 30 + [0] * 12, np.append(ours, theirs))
        assert found == pytest.approx(expected)
