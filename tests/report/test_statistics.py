"""Estimates, intervals and p-values against scipy's, and Holm's method against its definition."""

import itertools

import numpy as np
import pytest
from scipy import stats

from epcore.report.statistics import (
    Estimate,
    holm,
    normal,
    of_printed,
    of_trainings,
    over_trainings,
    student,
)  # fmt: skip

RANDOM = np.random.default_rng(5)
ONE, OTHER, THIRD = RANDOM.normal([[60], [58], [57]], 9, (3, 40))


# -- means -----------------------------------------------------------------------------------------


def ends(mean):
    return mean.value - mean.half_width, mean.value + mean.half_width


@pytest.mark.parametrize("count", [2, 3, 30, 1000])
def test_the_interval_is_that_of_scipy(count):
    values = np.random.default_rng(count).normal(60, 10, count)
    mean = student(values)
    expected = stats.t.interval(0.95, count - 1, loc=values.mean(), scale=stats.sem(values))
    assert ends(mean) == pytest.approx(expected)


def test_two_values_by_hand():
    """s = 1 / sqrt(2), its error 1 / 2, and t(0.975, 1) = 12.7062 as tables have it."""
    mean = student(np.array([0.0, 1.0]))
    assert mean.value == 0.5
    assert mean.half_width == pytest.approx(12.7062 / 2, abs=1e-4)


@pytest.mark.parametrize("count", [2, 3, 30, 1000])
def test_the_interval_of_a_paired_difference_is_that_of_scipys_paired_test(count):
    random = np.random.default_rng(count)
    common = random.normal(60, 10, count)
    values, others = (common + random.normal(shift, 2, count) for shift in (1, 0))
    difference = student(values - others)
    expected = stats.ttest_rel(values, others).confidence_interval(0.95)
    assert ends(difference) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("count", [2, 100])
def test_a_normal_interval_is_196_standard_errors_of_the_values_own_deviation(count):
    """As the code of wDAE-GNN computes it: numpy's std has ddof 0."""
    values = np.random.default_rng(count).normal(60, 10, count)
    deviation = np.sqrt(((values - values.mean()) ** 2).sum() / count)
    mean = normal(values)
    assert mean.value == pytest.approx(values.mean())
    assert mean.half_width == pytest.approx(1.96 * deviation / np.sqrt(count))


def test_of_one_training_the_interval_is_over_its_episodes():
    values = np.random.default_rng(0).normal(60, 10, 30)
    assert over_trainings([values]) == student(values)


def test_of_several_trainings_the_interval_is_over_their_means_by_hand():
    """Means 1, 2 and 6: mean 3, s = sqrt(7), and t(0.975, 2) = 4.3027; episodes do not matter."""
    for spread in (0, 0.5):
        trainings = [np.array([mean - spread, mean, mean + spread]) for mean in (1.0, 2.0, 6.0)]
        mean = over_trainings(trainings)
        assert mean.value == pytest.approx(3)
        assert mean.half_width == pytest.approx(4.3027 * np.sqrt(7 / 3), abs=1e-3)


# -- weighted sums of cells ------------------------------------------------------------------------


def test_cells_of_the_same_episodes_are_paired():
    estimate = of_trainings([(1, [ONE], "a"), (-1, [OTHER], "a")])
    theirs = stats.ttest_rel(ONE, OTHER, alternative="greater")
    assert estimate.above(0) == pytest.approx(theirs.pvalue, rel=1e-9)
    interval = stats.ttest_rel(ONE, OTHER).confidence_interval(0.95)
    assert estimate.half_width == pytest.approx((interval.high - interval.low) / 2, rel=1e-9)
    assert estimate.value == pytest.approx(np.mean(ONE) - np.mean(OTHER))


def test_cells_of_other_episodes_are_independent():
    estimate = of_trainings([(1, [ONE], "a"), (-1, [OTHER[:25]], "b")])
    theirs = stats.ttest_ind(ONE, OTHER[:25], equal_var=False, alternative="less")
    assert estimate.below(0) == pytest.approx(theirs.pvalue, rel=1e-9)


def test_a_gain_over_a_gain_pairs_what_can_be_paired():
    terms = [(1, [ONE], "a"), (-1, [OTHER], "a"), (-1, [THIRD], "b")]
    theirs = stats.ttest_ind(ONE - OTHER, THIRD, equal_var=False, alternative="greater")
    assert of_trainings(terms).above(0) == pytest.approx(theirs.pvalue, rel=1e-9)


def test_several_trainings_are_compared_by_seed():
    mine, theirs = (list(RANDOM.normal(mean, 9, (3, 40))) for mean in (60, 55))
    estimate = of_trainings([(1, mine, "a"), (-1, theirs, "b")])
    gaps = np.mean(mine, axis=1) - np.mean(theirs, axis=1)
    expected = stats.ttest_1samp(gaps, 1.5, alternative="greater")
    assert estimate.above(1.5) == pytest.approx(expected.pvalue, rel=1e-9)
    assert estimate.degrees == 2


def test_a_cell_with_fewer_episodes_is_paired_over_the_first_that_both_have():
    estimate = of_trainings([(1, [ONE], "a"), (-1, [OTHER[:25]], "a")])
    assert estimate == of_trainings([(1, [ONE[:25]], "a"), (-1, [OTHER[:25]], "a")])
    of_two = of_trainings([(1, [ONE, ONE], "a"), (-1, [OTHER[:25], OTHER], "a")])
    assert of_two.value == pytest.approx(np.mean(ONE[:25]) - np.mean(OTHER[:25]))


def test_equal_scores_leave_no_doubt():
    estimate = of_trainings([(1, [ONE], "a"), (-1, [ONE], "a")])
    assert (estimate.above(0), estimate.above(0, strictly=False)) == (1, 0)
    assert (estimate.below(0), estimate.below(0, strictly=False)) == (1, 0)
    assert estimate.above(-1) == 0
    assert estimate.below(-1) == 1


def test_printed_intervals_are_of_a_normal_distribution():
    estimate = of_printed([70.0, -68.0], [0.8, 0.6])
    assert estimate.value == 2
    assert estimate.half_width == pytest.approx(1.0, rel=1e-9)  # sqrt(0.8² + 0.6²)
    assert estimate.above(0) == pytest.approx(stats.norm.sf(2 / (1.0 / 1.959964)), rel=1e-6)


def closed_test(values):
    """Holm's p-values by what they are short for: a hypothesis is rejected if Bonferroni's test
    rejects every set of hypotheses that it is in."""
    places = range(len(values))
    sets = [
        chosen
        for size in range(1, len(values) + 1)
        for chosen in itertools.combinations(places, size)
    ]
    return [
        max(min(1, len(s) * min(values[k] for k in s)) for s in sets if place in s)
        for place in places
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6])
def test_holm_is_the_closed_test_of_bonferroni(count):
    for _ in range(20):
        values = RANDOM.uniform(0, 0.3, count).round(2).tolist()
        assert holm(values) == pytest.approx(closed_test(values))


def test_an_interval_lies_on_one_side_where_its_p_value_is_of_the_level():
    estimate = Estimate(1.0, 0.5, 7)
    for sign in (-1, 1):
        at_the_edge = estimate.value + sign * estimate.half_width
        p = estimate.above(at_the_edge) if sign < 0 else estimate.below(at_the_edge)
        assert p == pytest.approx(0.025, rel=1e-9)
