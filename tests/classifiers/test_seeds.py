"""Classifiers that draw at random, whose variance over seeds can be measured."""

import pytest
import torch
from test_invariants import ALL, drawn

from epcore.classifiers.episodes import EpisodeBatch

RANDOM = [each for each in ALL.values() if "seed" in type(each).model_fields]


def test_those_that_draw_have_a_seed():
    assert {each.name for each in RANDOM} == {"baseline", "baseline-plus-plus", "transmatch-head"}


@pytest.mark.parametrize("classifier", RANDOM, ids=lambda each: each.name)
def test_the_seed_decides_the_scores(classifier):
    episodes, _ = drawn(1, 0.5)
    scores = [
        classifier.model_copy(update={"seed": seed}).scores(episodes) for seed in (0, 1, 3999)
    ]
    assert torch.equal(scores[0], classifier.scores(episodes))
    assert not torch.allclose(scores[0], scores[1], atol=1e-3)
    assert not torch.allclose(scores[1], scores[2], atol=1e-3)


def test_no_seed_and_episode_share_their_draws_with_another_pair():
    numbers = torch.tensor([0, 1, 2, 999_999])
    episodes = EpisodeBatch(torch.rand(4, 4, 2), way=2, shot=1, queries=2, numbers=numbers)
    draws = {
        float(torch.rand((), generator=generator, dtype=torch.float64))
        for seed in (0, 1, 2, 3999)
        for generator in episodes.generators(seed)
    }
    assert len(draws) == 16
