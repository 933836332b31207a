"""The interval is Student's, and it covers."""

import numpy as np
import pytest
from scipy import stats

from epcore.report.statistics import mean_with_interval


@pytest.mark.parametrize("count", [2, 3, 30, 1000])
def test_the_interval_is_that_of_scipy(count):
    values = np.random.default_rng(count).normal(60, 10, count)
    mean = mean_with_interval(values)
    low, high = stats.t.interval(0.95, count - 1, loc=values.mean(), scale=stats.sem(values))
    assert mean.count == count
    assert (mean.value - mean.interval, mean.value + mean.interval) == pytest.approx((low, high))


def test_two_values_by_hand():
    """s = 1 / sqrt(2), its error 1 / 2, and t(0.975, 1) = 12.7062 as tables have it."""
    mean = mean_with_interval(np.array([0.0, 1.0]))
    assert mean.value == 0.5
    assert mean.interval == pytest.approx(12.7062 / 2, abs=1e-4)


@pytest.mark.parametrize("count", [5, 30])
def test_the_interval_covers_the_truth_in_95_of_100_samples(count):
    """A normal interval would cover 88 of 100 samples of five."""
    samples = np.random.default_rng(0).normal(3, 2, (2000, count))
    means = [mean_with_interval(sample) for sample in samples]
    covered = np.mean([abs(mean.value - 3) <= mean.interval for mean in means])
    assert covered == pytest.approx(0.95, abs=0.015)
