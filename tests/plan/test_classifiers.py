"""`<recipe>+<classifier>`: a recipe's network, tested with an entry of classifiers.yaml."""

import re
from pathlib import Path

import pytest

from epcore.errors import UserError
from epcore.plan import Plan
from epcore.plan.run import Run

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture(scope="module")
def plan():
    return Plan(CONFIG, "demo")


def run(recipe, protocol="5way-1shot"):
    return Run("glyph-mini", "conv4", recipe, 0, protocol)


@pytest.mark.parametrize("recipe", ["net", "epnet", "ep-001", "ep-110", "rot-lp"])
def test_the_network_is_the_recipes_and_nothing_but_the_test_differs(plan, recipe):
    for classifier in plan.registry.classifiers:
        tested = f"{recipe}+{classifier}"
        assert plan.runs.checkpoint(run(tested)) == plan.runs.checkpoint(run(recipe))
        assert plan.runs.features(run(tested)) == plan.runs.features(run(recipe))
        for phase in ("pretraining", "finetuning"):
            one, other = (plan.registry.recipe(name, "conv4") for name in (tested, recipe))
            assert one.propagation_in(phase) == other.propagation_in(phase)
        told = plan.runs.evaluate("conv4", tested)
        choice = plan.registry.classifiers[classifier]
        assert told.propagation.classifier == choice.classifier
        assert told.grid == choice.grid
        plain = plan.runs.evaluate("conv4", recipe).propagation
        same = {"classifier": plain.classifier}
        assert told.propagation.model_copy(update=same) == plain


def test_what_a_recipe_is_tested_with_already_shares_its_scores(plan):
    assert plan.runs.scores(run("net+label-propagation")) == plan.runs.scores(run("net"))
    assert plan.runs.scores(run("net+simpleshot")).endswith("/net+simpleshot/s0/5way-1shot.csv")


def test_a_choice_is_made_on_validation_episodes_of_the_same_kind(plan):
    assert plan.runs.validation(run("net+simpleshot")) is None
    for protocol in ("5way-1shot", "5way-5shot-dirichlet"):
        found = plan.runs.validation(run("net+ridge", protocol))
        assert found == f"results/demo/episodes/glyph-mini/val-{protocol}.npz"
        one = plan.registry.protocols[protocol]
        other = plan.registry.protocols[f"val-{protocol}"]
        assert other == one.model_copy(update={"split": "val"})
    with pytest.raises(
        UserError, match=r"recipe net\+ridge, .* unknown protocol 'val-5way-1shot-q1"
    ):
        plan.runs.validation(run("net+ridge", "5way-1shot-q1"))


def test_where_validation_classes_are_too_few_a_choice_is_made_on_five_ways(plan):
    found = plan.runs.validation(run("net+ridge", "20way-5shot"))
    assert found == "results/demo/episodes/glyph-mini/val-5way-5shot.npz"
    assert plan.registry.protocols["20way-5shot"].way > 16


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("recipe: net,", "recipe: nett,", "row-place: unknown recipe 'nett'; did you mean 'net'?"),
        (
            "recipe: ep-001+label-propagation}",
            "recipe: ep-001+label-propagatio}",
            "unknown entry of classifiers.yaml 'label-propagatio'; did you mean",
        ),
        ("baseline: EP}", "baseline: EPP}", "unknown row of ours 'EPP'; did you mean 'EP'?"),
        (
            "{recipe: net, baseline: EP}",
            "{recipe: net, names: [tims], baseline: EP}",
            "unknown entry of classifiers.yaml 'tims'",
        ),
        (
            "{recipe: net, baseline: EP}",
            "{recipe: net, baseline: EP, baseline_recipe: net}",
            "give baseline or baseline_recipe, not both",
        ),
    ],
)
def test_a_mistake_in_a_table_of_classifiers_is_told(config, old, new, said):
    file = config / "tables" / "classifiers.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(said.removeprefix("row-place: "))):
        Plan(config, "demo").check()


def test_the_suites_of_recipes_are_what_they_are_without_classifiers(plan, config):
    for name in ("classifiers", "with-ep"):
        (config / "tables" / f"{name}.yaml").unlink()
    without = Plan(config, "demo").tested.suites(False)
    apart = [suite for suite in plan.tested.suites(False) if "dirichlet" not in suite[0]]
    assert apart == [suite for suite in without if "dirichlet" not in suite[0]]
