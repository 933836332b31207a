"""The time that is left of a run, by what its jobs took before."""

from pathlib import Path

import pytest

from epcore.footprint.ledger import append
from epcore.footprint.time_left import TimeLeft, said, seconds_by_rule, seconds_by_stage
from epcore.plan.paths import LEDGER

SECONDS = {"pretrain": 100.0, "embed": 4.0}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def left(clock):
    left = TimeLeft(SECONDS, clock)
    left.plan({"pretrain": 3, "embed": 5, "publish": 1})
    return left


def test_at_first_it_is_the_sum_over_jobs(left):
    assert left.seconds() == 3 * 100 + 5 * 4


def test_jobs_run_together_and_what_they_have_run_is_off(left, clock):
    left.begin(1, "pretrain")
    left.begin(2, "pretrain")
    clock.now = 30.0
    assert left.seconds() == (320 - 2 * 30) / 2


def test_a_job_that_takes_longer_than_known_is_not_counted_below_nothing(left, clock):
    left.begin(1, "pretrain")
    clock.now = 1000.0
    assert left.seconds() == 220


def test_jobs_that_finished_say_how_fast_this_machine_is(left, clock):
    left.begin(1, "pretrain")
    clock.now = 150.0
    left.end(1)
    assert left.seconds() == 1.5 * (2 * 100 + 5 * 4)


def test_short_jobs_alone_say_nothing_of_it(left, clock):
    left.begin(1, "embed")
    clock.now = 40.0
    left.end(1)
    assert left.seconds() == 3 * 100 + 4 * 4


def test_a_job_that_is_tried_again_is_still_left(left, clock):
    left.begin(1, "pretrain")
    clock.now = 50.0
    left.begin(1, "pretrain")
    assert left.seconds() == 320
    left.end(99)
    assert left.seconds() == 320


def test_a_job_takes_what_it_took_here_or_else_elsewhere(tmp_path, monkeypatch, entry):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "measured.csv").write_text(
        "scale,stage,dataset,backbone,recipe,device,jobs,seconds,kwh\n"
        "mine,pretrain,,conv4,,cpu,1,100,0.1\nmine,pretrain,,wrn,,cpu,3,20,0.1\n"
        "mine,pretrain,a,wrn,,cpu,3,20,0.1\n"
        "mine,meta-train,,,,cpu,1,7,0.1\nother,embed,,,,cpu,1,5,0.1\n"
    )
    assert seconds_by_stage(tmp_path, "mine") == {"pretrain": 40, "meta-train": 7}
    append(Path(LEDGER.format(scale="mine")), entry(stage="meta-train", seconds=9.0))
    assert seconds_by_stage(tmp_path, "mine") == {"pretrain": 40, "meta-train": 9}


def test_a_rule_has_the_name_of_its_stage():
    stages = {"meta-train": 1.0, "evaluate": 2.0, "embed": 3.0}
    rules = {"meta_train": 1, "evaluate_5way_1shot": 1, "publish": 1}
    assert seconds_by_rule(rules, stages) == {"meta_train": 1, "evaluate_5way_1shot": 2}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (20, "less than a minute left"),
        (100, "some 2 min left"),
        (5400, "some 2 h left"),
    ],
)
def test_it_is_said_in_words(seconds, words):
    assert said(seconds) == words
