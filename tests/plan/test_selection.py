"""Recipes that are the best of candidates on validation: the authors' grid (A31, A36, A37)."""

import re
from itertools import product
from pathlib import Path

import pytest
from plans import plan_of, put

from epcore.errors import UserError
from epcore.plan import Plan

CONFIG = Path(__file__).parents[2] / "config"
PAIRS = [("epnet-selected", "epnet"), ("net-selected", "net")]
GRID = ("learning_rate", "episodes_per_epoch", "class_weight")


@pytest.fixture(scope="module", params=["demo", "paper"])
def plan(request):
    return plan_of(request.param)


@pytest.mark.parametrize(("selected", "plain"), PAIRS)
def test_the_candidates_are_the_grid_of_the_authors_and_differ_in_nothing_else(
    plan, selected, plain
):
    for backbone in ("conv4", "wrn"):
        expected = plan.registry.recipes.resolve(plain, backbone)
        rates = []
        for name in plan.registry.recipes.selection(selected, "pretraining"):
            recipe = plan.registry.recipes.resolve(name, backbone)
            rates.append(recipe.pretraining.learning_rate)
            alike = recipe.pretraining.model_copy(
                update={"learning_rate": expected.pretraining.learning_rate}
            )
            assert alike == expected.pretraining
            assert not plan.registry.recipes.selection(name, "pretraining")
        assert sorted(rates) == [0.1, 0.2]
        grid = []
        for name in plan.registry.recipes.selection(selected, "finetuning"):
            recipe = plan.registry.recipes.resolve(name, backbone)
            grid.append(tuple(getattr(recipe.finetuning, key) for key in GRID))
            default = {key: getattr(expected.finetuning, key) for key in GRID}
            assert recipe.finetuning.model_copy(update=default) == expected.finetuning
            assert recipe.pretraining == expected.pretraining
            for phase in ("pretraining", "finetuning", "testing"):
                assert recipe.propagation_in(phase) == expected.propagation_in(phase)
            assert not plan.registry.recipes.selection(name, "finetuning")
        assert sorted(grid) == sorted(product((0.01, 0.001), (100, 600), (0, 0.1, 0.5)))


@pytest.mark.parametrize(("selected", "plain"), PAIRS)
def test_every_candidate_is_finetuned_from_the_pretraining_that_was_chosen(plan, selected, plain):
    assert plan.runs.owner("pretraining", "conv4", selected) == selected
    assert plan.runs.owner("finetuning", "conv4", selected) == selected
    candidates = plan.registry.recipes.selection(selected, "finetuning")
    assert {plan.runs.owner("pretraining", "conv4", name) for name in candidates} == {selected}
    assert plan.runs.candidates("conv4", selected, "finetuning") == list(candidates)


def test_what_a_default_recipe_trains_already_is_not_trained_for_the_selection_again():
    """At scale paper they pretrain with 0.1 too."""
    plan = plan_of("paper")
    for selected, plain in PAIRS:
        found = plan.runs.candidates("conv4", selected, "pretraining")
        assert found == [plain, f"{selected}-lr-02"]


def test_no_table_trains_the_candidates_of_a_selection(plan):
    cells = [cell for table in plan.tables.covered for cell in plan.tables.measured(table)]
    assert not [cell for cell in cells if "net-selected/" in cell.checkpoint_meta]
    assert not [cell for cell in cells if "-selected-lr" in cell.checkpoint_meta]


def test_a_recipe_may_choose_in_one_phase_alone(config):
    own = {"description": "ours", "extends": "net-selected", "candidates": {"pretraining": None}}
    put(config, "recipes.yaml", "recipes/mine", own)
    plan = Plan(config, "demo")
    plan.check()
    assert not plan.registry.recipes.selection("mine", "pretraining")
    assert plan.runs.owner("pretraining", "conv4", "mine") == "net"
    assert len(plan.registry.recipes.selection("mine", "finetuning")) == 12
    assert {
        plan.runs.owner("pretraining", "conv4", n)
        for n in plan.registry.recipes.selection("mine", "finetuning")
    } == {"net"}


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        (
            {"pretrainig": {"a": {"learning_rate": 0.1}}},
            "recipes.net.candidates: pretrainig: Input should be 'pretraining' or 'finetuning'",
        ),
        (
            {"finetuning": {"paper": {"class_weight": 0.1}}},
            "recipes.net.candidates: a recipe 'net-paper' is there already; rename the candidate",
        ),
    ],
)
def test_a_mistake_in_candidates_is_named(config, candidates, said):
    put(config, "recipes.yaml", "recipes/net/candidates", candidates)
    with pytest.raises(UserError, match=re.escape(said)):
        Plan(config, "demo")
