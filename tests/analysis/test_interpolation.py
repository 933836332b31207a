"""Probabilities along the way between two images, and the numbers of such curves."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from reference import embeddings, label_scores

from epcore.analysis.interpolation import (
    READINGS,
    Pairs,
    bootstrap_number,
    curves,
    measure,
    relative_slope,
    rise,
    slope_variation,
    steepest_slope,
)
from epcore.data.episodes import Episodes
from epcore.evaluation.embed import Features
from epcore.evaluation.inference import Inference
from epcore.plan import Plan
from epcore.plan.figures import InterpolatedPairs

WAY, QUERIES, STEPS = 4, 3, 8
SETTINGS = InterpolatedPairs(pairs=5, shown=2, steps=STEPS, resamples=500, seed=0)


@pytest.fixture
def propagation(config):
    """How a recipe of the project is tested."""
    plan = Plan(config, "demo")
    return lambda recipe: plan.registry.recipes.resolve(recipe, "resnet12").propagation_in(
        "testing"
    )


@pytest.fixture
def features():
    """6 classes of 10 images each, not well apart."""
    random = np.random.default_rng(0)
    values = np.repeat(random.normal(size=(6, 12)), 10, axis=0) + random.normal(size=(60, 12))
    return Features(np.arange(60), np.arange(60) // 10, values.astype(np.float32))


def episodes_of(shot, count=8):
    random = np.random.default_rng(1)
    rows = np.stack(
        [
            [
                10 * label + random.choice(10, shot + QUERIES, replace=False)
                for label in random.choice(6, WAY, replace=False)
            ]
            for _ in range(count)
        ]
    )
    return Episodes(rows[..., :shot], rows[..., shot:], rows[..., :0])


@pytest.mark.parametrize("recipe", ["epnet", "net", "net-paper-literal"])
@pytest.mark.parametrize("shot", [1, 2])
@pytest.mark.parametrize("between", READINGS)
def test_a_curve_is_the_probability_of_one_more_image_of_its_episode(
    features, propagation, recipe, shot, between
):
    """By the formulas, in float64, one graph at a time; it joins before or after propagation."""
    settings = propagation(recipe)
    pairs = Pairs.draw(episodes_of(shot), 3, seed=0)
    found = curves(features, pairs, STEPS, Inference(settings), between)
    assert found.shape == (3, STEPS + 1)
    bandwidth, scale = settings.bandwidth, settings.normalize_labels
    for curve, rows, (one, other) in zip(
        found, pairs.episodes.images(), pairs.classes, strict=True
    ):
        images = features.values[rows].astype(np.float64)
        if settings.embedding and between == "embeddings":
            images = embeddings(images, bandwidth)
        for probability, alpha in zip(curve, np.arange(STEPS + 1) / STEPS, strict=True):
            interpolant = alpha * images[one * shot] + (1 - alpha) * images[other * shot]
            nodes = np.vstack([images, interpolant])
            if settings.embedding and between == "features":
                # Rounded, so that at the ends two equal images have equal embeddings.
                nodes = embeddings(nodes, bandwidth).round(12)
            scores = label_scores(nodes, WAY, shot, bandwidth, scale)[-1] + 1e-6
            weights = scores if settings.query_logits == "log-scores" else np.exp(scores)
            assert probability == pytest.approx(weights[one] / weights.sum(), rel=1e-6)


def test_both_readings_are_one_without_embedding_propagation_and_two_with_it(features, propagation):
    pairs = Pairs.draw(episodes_of(1), 3, seed=0)
    for recipe, same in (("net", True), ("epnet", False)):
        inference = Inference(propagation(recipe))
        one, other = (curves(features, pairs, STEPS, inference, each) for each in READINGS)
        assert np.array_equal(one, other) == same


@pytest.mark.parametrize("between", READINGS)
def test_the_first_image_is_at_the_end_of_the_way(features, propagation, between):
    pairs = Pairs.draw(episodes_of(1), 8, seed=0)
    found = curves(features, pairs, STEPS, Inference(propagation("net")), between)
    assert (found[:, -1] > 0.5).all()
    assert (found[:, 0] < 0.5).all()


def test_a_pair_is_of_two_classes_of_its_episode_and_drawn_again_from_the_same_seed():
    episodes = episodes_of(1)
    pairs, again = Pairs.draw(episodes, 6, seed=3), Pairs.draw(episodes, 6, seed=3)
    assert (pairs.classes == again.classes).all()
    assert (pairs.classes != Pairs.draw(episodes, 6, seed=4).classes).any()
    assert (pairs.classes[:, 0] != pairs.classes[:, 1]).all()
    assert set(pairs.classes.ravel()) <= set(range(WAY))
    assert (pairs.episodes.support == episodes.support[:6]).all()
    assert len(Pairs.draw(episodes, 100, seed=3).classes) == len(episodes)


def test_slopes_of_curves_that_are_known():
    """A straight line; a step; a half wave p = (1 - cos(pi a)) / 2, whose slope rises and falls."""
    alphas = np.linspace(0, 1, 1001)
    line, step = alphas, (alphas > 0.5).astype(float)
    wave = (1 - np.cos(np.pi * alphas)) / 2
    found = np.stack([line, step, wave])
    assert steepest_slope(found) == pytest.approx([1, 1000, np.pi / 2], rel=1e-3)
    assert slope_variation(found) == pytest.approx([0, 2000, np.pi], rel=2e-3, abs=1e-9)
    assert rise(found / 2) == pytest.approx([0.5, 0.5, 0.5])
    assert relative_slope(found / 2) == pytest.approx([1, 1000, np.pi / 2], rel=1e-3)


def test_both_measures_are_sums_over_the_steps():
    curve = np.random.default_rng(0).random(9)
    slopes = [8 * (after - before) for before, after in pairwise(curve)]
    turns = [abs(after - before) for before, after in pairwise(slopes)]
    assert steepest_slope(curve[None]) == pytest.approx([max(map(abs, slopes))])
    assert slope_variation(curve[None]) == pytest.approx([sum(turns)])


def test_the_bootstrap_is_about_the_interval_of_the_normal_and_the_same_twice():
    values = np.random.default_rng(0).normal(3, 2, 400)
    settings = SETTINGS.model_copy(update={"resamples": 4000})
    number = bootstrap_number("n", values, "w", settings)
    half = 1.96 * values.std(ddof=1) / 20
    assert number.value == pytest.approx(values.mean())
    assert (number.low, number.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.03
    )
    assert bootstrap_number("n", values, "w", settings) == number


def test_the_difference_is_paired():
    """Pairs vary much more than the networks: the interval of the difference must not."""
    random = np.random.default_rng(0)
    steepness = random.uniform(2, 20, (60, 1))
    alphas = np.linspace(0, 1, STEPS + 1)
    steep, flat = (1 / (1 + np.exp(-k * (alphas - 0.5))) for k in (steepness, 0.9 * steepness))
    numbers = {number.name: number for number in measure({"epnet": flat, "net": steep}, SETTINGS)}
    assert list(numbers) == [
        f"{measured}-{of}"
        for measured in ("steepest-slope", "slope-variation", "rise", "relative-slope")
        for of in ("epnet", "net", "difference")
    ]
    for measured in ("steepest-slope", "slope-variation"):
        one, other, difference = (
            numbers[f"{measured}-{of}"] for of in ("epnet", "net", "difference")
        )
        assert difference.value == pytest.approx(one.value - other.value)
        assert difference.low < difference.value < difference.high < 0
        assert difference.high - difference.low < 0.3 * (one.high - one.low)


def test_a_pair_whose_probability_does_not_rise_has_no_relative_slope_and_is_said_to_be_missing():
    """Rises of 0.5, 0.4, 0.2, 0 and of 0.5, -0.1, 0.2, 0.3: the first and third remain."""
    one, other = (
        np.stack([np.linspace(0.3, 0.3 + rise, STEPS + 1) for rise in rises])
        for rises in ((0.5, 0.4, 0.2, 0), (0.5, -0.1, 0.2, 0.3))
    )
    one[0, 1:] += 0.25  # a step of 0.25 and 1 / 16 in an eighth, of 0.75 in all
    numbers = {number.name: number for number in measure({"epnet": one, "net": other}, SETTINGS)}
    steep = 8 * (0.25 + 1 / 16) / 0.75
    assert numbers["relative-slope-epnet"].value == pytest.approx((steep + 1) / 2)
    assert numbers["relative-slope-net"].value == pytest.approx(1)
    assert numbers["relative-slope-difference"].value == pytest.approx((steep - 1) / 2)
    assert numbers["relative-slope-net"].what.endswith(
        "of the 2 of 4 pairs whose p rises in both networks"
    )
    assert numbers["rise-net"].value == pytest.approx((0.5 - 0.1 + 0.2 + 0.3) / 4)
    assert "pairs whose" not in numbers["rise-net"].what
    falling = {"epnet": one[:, ::-1], "net": other[:, ::-1]}
    assert not any(n.name.startswith("relative-slope") for n in measure(falling, SETTINGS))


@pytest.mark.parametrize("between", READINGS)
def test_an_interpolant_leaves_the_images_of_the_episode_where_they_are(
    features, propagation, between
):
    """More alphas change no probability: each interpolant has a graph of its own."""
    pairs = Pairs.draw(episodes_of(1), 3, seed=0)
    inference = Inference(propagation("epnet"))
    few, many = (curves(features, pairs, steps, inference, between) for steps in (STEPS, 3 * STEPS))
    assert torch.allclose(torch.from_numpy(few), torch.from_numpy(many[:, ::3]), atol=1e-12)
