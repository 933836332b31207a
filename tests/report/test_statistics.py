"""Intervals are Student's, of means and of paired differences, and they cover."""

import numpy as np
import pytest
from scipy import stats

from epcore.report.statistics import mean_with_interval, over_trainings, paired


def paired_difference(values, others, interval="student"):
    return mean_with_interval(paired(values, others), interval)


def ends(mean):
    return mean.value - mean.interval, mean.value + mean.interval


@pytest.mark.parametrize("count", [2, 3, 30, 1000])
def test_the_interval_is_that_of_scipy(count):
    values = np.random.default_rng(count).normal(60, 10, count)
    mean = mean_with_interval(values)
    expected = stats.t.interval(0.95, count - 1, loc=values.mean(), scale=stats.sem(values))
    assert ends(mean) == pytest.approx(expected)


def test_two_values_by_hand():
    """s = 1 / sqrt(2), its error 1 / 2, and t(0.975, 1) = 12.7062 as tables have it."""
    mean = mean_with_interval(np.array([0.0, 1.0]))
    assert mean.value == 0.5
    assert mean.interval == pytest.approx(12.7062 / 2, abs=1e-4)


@pytest.mark.parametrize("count", [2, 3, 30, 1000])
def test_the_interval_of_a_paired_difference_is_that_of_scipys_paired_test(count):
    random = np.random.default_rng(count)
    common = random.normal(60, 10, count)
    values, others = (common + random.normal(shift, 2, count) for shift in (1, 0))
    difference = paired_difference(values, others)
    expected = stats.ttest_rel(values, others).confidence_interval(0.95)
    assert ends(difference) == pytest.approx(tuple(expected))


def test_a_paired_difference_by_hand():
    """Differences 1, 2, 3: mean 2, s = 1, and t(0.975, 2) = 4.3027."""
    difference = paired_difference(np.array([11.0, 22, 33]), np.array([10.0, 20, 30]))
    assert difference.value == 2
    assert difference.interval == pytest.approx(4.3027 / np.sqrt(3), abs=1e-4)


def test_the_other_way_round_the_difference_has_the_other_sign():
    one, other = np.random.default_rng(0).normal(50, 10, (2, 40))
    there, back = paired_difference(one, other), paired_difference(other, one)
    assert (there.value, there.interval) == pytest.approx((-back.value, back.interval))


def test_what_episodes_have_in_common_does_not_widen_the_interval():
    random = np.random.default_rng(0)
    gain = random.normal(1, 1, 200)
    hard = random.normal(60, 15, 200)
    interval = paired_difference(hard + gain, hard).interval
    assert interval == pytest.approx(mean_with_interval(gain).interval)
    assert interval < mean_with_interval(hard).interval / 5


@pytest.mark.parametrize(("left", "right"), [(3, 4), (4, 3), (2, 1)])
def test_episodes_that_are_not_the_same_are_not_paired(left, right):
    message = f"^{left} episodes cannot be paired with {right}$"
    with pytest.raises(ValueError, match=message):
        paired_difference(np.zeros(left), np.zeros(right))


@pytest.mark.parametrize("count", [2, 100])
def test_a_normal_interval_is_196_standard_errors_of_the_values_own_deviation(count):
    """As the code of wDAE-GNN computes it: numpy's std has ddof 0."""
    values, others = np.random.default_rng(count).normal(60, 10, (2, count))
    deviation = np.sqrt(((values - values.mean()) ** 2).sum() / count)
    mean = mean_with_interval(values, "normal")
    assert mean.value == pytest.approx(values.mean())
    assert mean.interval == pytest.approx(1.96 * deviation / np.sqrt(count))
    differences = mean_with_interval(values - others, "normal")
    assert paired_difference(values, others, "normal") == differences


def test_of_one_training_the_interval_is_over_its_episodes():
    values = np.random.default_rng(0).normal(60, 10, 30)
    for interval in ("student", "normal"):
        assert over_trainings([values], interval) == mean_with_interval(values, interval)


def test_of_several_trainings_the_interval_is_over_their_means_by_hand():
    """Means 1, 2 and 6: mean 3, s = sqrt(7), and t(0.975, 2) = 4.3027; episodes do not matter."""
    for spread in (0, 0.5):
        trainings = [np.array([mean - spread, mean, mean + spread]) for mean in (1.0, 2.0, 6.0)]
        mean = over_trainings(trainings)
        assert mean.value == pytest.approx(3)
        assert mean.interval == pytest.approx(4.3027 * np.sqrt(7 / 3), abs=1e-3)
