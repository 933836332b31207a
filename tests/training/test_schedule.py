"""Schedules: rates by epoch, also after a resume, and what settings may say."""

import math

import pytest
import torch
from pydantic import ValidationError

from epcore.training.optimization import EpisodicOptimization, Optimization, SteppedSgd
from epcore.training.schedule import clip_gradients, optimizer_of, schedule_of


def settings(epochs=8, drops=(3, 6), **more):
    given = {"learning_rate": 0.5, "momentum": 0.9, "weight_decay": 0, "keep": "last"} | more
    return SteppedSgd(epochs=epochs, drops=drops, **given)


def start(chosen):
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=chosen.learning_rate, momentum=chosen.momentum)
    return optimizer, schedule_of(optimizer, chosen)


def go_on(optimizer, schedule, epochs):
    rates = []
    for _ in range(epochs):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step(accuracy=0.5, loss=1.0)
    return rates


EXPECTED = [0.5] * 3 + [0.05] * 3 + [0.005] * 2


def test_the_rate_falls_to_a_tenth_after_each_drop():
    assert go_on(*start(settings()), 8) == pytest.approx(EXPECTED)
    assert go_on(*start(settings(drops=())), 8) == [0.5] * 8


@pytest.mark.parametrize("killed", [1, 3, 4, 7])
def test_a_resumed_schedule_goes_on_where_it_was(killed):
    optimizer, schedule = start(settings())
    before = go_on(optimizer, schedule, killed)
    again, resumed = start(settings())
    again.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(schedule.state_dict())
    assert before + go_on(again, resumed, 8 - killed) == pytest.approx(EXPECTED)


def test_the_settings_say_which_epoch_is_kept_and_nothing_stops_early():
    for keep, last in (("last", True), ("best", False)):
        schedule = start(settings(keep=keep))[1]
        assert (schedule.keeps_last, schedule.over) == (last, False)


def cosine(epochs):
    return Optimization(
        epochs=epochs,
        learning_rate=0.2,
        momentum=0.9,
        weight_decay=0,
        schedule="cosine",
        plateau={"metric": "accuracy", "patience": 0, "factor": 0.5},
        stop_ratio=0.9,
    )


@pytest.mark.parametrize("killed", [0, 1, 4])
def test_a_cosine_falls_by_half_a_wave_whatever_the_validation_says(killed):
    optimizer, schedule = start(cosine(5))
    before = go_on(optimizer, schedule, killed)
    again, resumed = start(cosine(5))
    if killed:
        again.load_state_dict(optimizer.state_dict())
        resumed.load_state_dict(schedule.state_dict())
    rates = before + go_on(again, resumed, 5 - killed)
    assert rates == pytest.approx([0.1 * (1 + math.cos(math.pi * n / 5)) for n in range(5)])
    assert (resumed.keeps_last, resumed.over) == (False, False)


@pytest.mark.parametrize("drops", [(3, 3), (6, 3), (8,), (0,)])
def test_drops_that_are_no_epochs_in_order_are_refused(drops):
    with pytest.raises(ValidationError):
        settings(drops=drops)


@pytest.mark.parametrize(
    ("clipping", "expected"),
    [({}, [3.0, -4.0]), ({"clip": 2.5}, [1.5, -2.0]), ({"clip": {"each": 3.5}}, [3.0, -3.5])],
)
def test_gradients_are_clipped_by_their_norm_or_each(clipping, expected):
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.grad = torch.tensor([[3.0, -4.0]])  # of norm 5
    given = {"epochs": 1, "learning_rate": 0.1, "weight_decay": 0, "halve_every": 1}
    clip_gradients(model, EpisodicOptimization(**given, **clipping))
    assert model.weight.grad[0].tolist() == pytest.approx(expected, rel=1e-5)


def test_a_rate_falls_to_parts_of_the_first_one_after_given_epochs():
    chosen = EpisodicOptimization(
        epochs=6, learning_rate=0.1, momentum=0.9, weight_decay=0, falls={2: 0.06, 5: 0.0024}
    )
    weight = torch.nn.Linear(1, 1)
    optimizer = optimizer_of(weight, chosen)
    assert isinstance(optimizer, torch.optim.SGD)
    assert optimizer.defaults["nesterov"]
    assert go_on(optimizer, schedule_of(optimizer, chosen), 6) == pytest.approx(
        [0.1, 0.1, 0.006, 0.006, 0.006, 0.00024]
    )
