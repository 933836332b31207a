"""Effects of a full factorial design are those of a regression on factors coded -1 and +1."""

import itertools

import numpy as np
import pytest
from scipy import stats

from epcore.report.ablation import contrast, effects

FACTORS = ("EFT", "ROT", "LP", "EP")


def design(factors=FACTORS):
    """Every set of factors that are on."""
    return [
        frozenset(on)
        for size in range(len(factors) + 1)
        for on in itertools.combinations(factors, size)
    ]


def random_cells(factors=FACTORS, episodes=25, seed=0):
    random = np.random.default_rng(seed)
    hard = random.normal(0, 10, episodes)
    return {
        on: random.uniform(40, 70) + hard + random.normal(0, 3, episodes) for on in design(factors)
    }


def regression(cells, factors):
    """Least squares of the cells on every product of factors coded -1 and +1."""
    every = [term for size in range(len(factors) + 1)
             for term in itertools.combinations(factors, size)]  # fmt: skip
    matrix = [
        [np.prod([1 if factor in on else -1 for factor in term]) for term in every] for on in cells
    ]
    solution, *_ = np.linalg.lstsq(np.array(matrix), np.array(list(cells.values())), rcond=None)
    return dict(zip(every, solution, strict=True))


def test_the_terms_are_each_factor_and_each_pair_once():
    factors = ("A", "B", "C")
    assert list(effects([random_cells(factors)], factors)) == [
        ("A",), ("B",), ("C",), ("A", "B"), ("A", "C"), ("B", "C"),
    ]  # fmt: skip


@pytest.mark.parametrize("factors", [("A",), ("A", "B"), ("A", "B", "C"), FACTORS])
def test_effects_are_twice_and_four_times_the_coefficients_of_least_squares(factors):
    """From -1 to +1 is a step of two; a pair is a step of a step."""
    cells = random_cells(factors)
    coefficients = regression({on: values.mean() for on, values in cells.items()}, factors)
    for term, effect in effects([cells], factors).items():
        assert effect.value == pytest.approx(2 ** len(term) * coefficients[term])


def test_intervals_are_those_of_the_effects_of_each_episode():
    cells = random_cells()
    coefficients = regression(cells, FACTORS)
    for term, effect in effects([cells], FACTORS).items():
        by_episode = 2 ** len(term) * coefficients[term]
        np.testing.assert_allclose(contrast(cells, term), by_episode)
        low, high = stats.ttest_1samp(by_episode, 0).confidence_interval(0.95)
        assert effect.value - effect.half_width == pytest.approx(low)
        assert effect.value + effect.half_width == pytest.approx(high)


def test_how_hard_an_episode_is_adds_nothing_to_an_interval():
    cells = random_cells()
    hard = np.random.default_rng(5).normal(0, 50, 25)
    harder = {on: values + hard for on, values in cells.items()}
    one, other = effects([cells], FACTORS), effects([harder], FACTORS)
    for term in one:
        assert other[term].value == pytest.approx(one[term].value)
        assert other[term].half_width == pytest.approx(one[term].half_width)


def test_one_number_a_cell_gives_one_number():
    effect = contrast({on: np.array(5.0 * ("EP" in on)) for on in design()}, ("EP",))
    assert effect.shape == ()
    assert effect == 5


def test_of_several_trainings_the_effect_is_the_mean_of_theirs_and_the_interval_over_them():
    trainings = [random_cells(seed=seed) for seed in range(3)]
    for term, effect in effects(trainings, FACTORS).items():
        means = [effects([cells], FACTORS)[term].value for cells in trainings]
        low, high = stats.t.interval(0.95, 2, loc=np.mean(means), scale=stats.sem(means))
        assert effect.value == pytest.approx(np.mean(means))
        assert effect.half_width == pytest.approx((high - low) / 2)
