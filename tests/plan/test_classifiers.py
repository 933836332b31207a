"""`<recipe>+<classifier>`: a recipe's network, tested with an entry of classifiers.yaml."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from plans import plan_of, put

from epcore.commands.check_methods import check_methods
from epcore.errors import UserError
from epcore.plan import Plan
from epcore.plan.run import Run

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture(scope="module")
def plan():
    return plan_of("demo")


def run(recipe, protocol="5way-1shot"):
    return Run("glyph-mini", "conv4", recipe, 0, protocol)


@pytest.mark.parametrize("recipe", ["net", "epnet", "ep-001", "ep-110", "rot-lp"])
def test_the_network_is_the_recipes_and_nothing_but_the_test_differs(plan, recipe):
    for classifier in plan.registry.recipes.classifiers:
        tested = f"{recipe}+{classifier}"
        assert plan.runs.checkpoint(run(tested)) == plan.runs.checkpoint(run(recipe))
        assert plan.runs.features(run(tested)) == plan.runs.features(run(recipe))
        for phase in ("pretraining", "finetuning"):
            one, other = (plan.registry.recipes.resolve(name, "conv4") for name in (tested, recipe))
            assert one.propagation_in(phase) == other.propagation_in(phase)
        told = plan.runs.evaluate("conv4", tested)
        choice = plan.registry.recipes.classifiers[classifier]
        assert told.propagation.classifier == choice.classifier
        assert told.grid == choice.grid
        plain = plan.runs.evaluate("conv4", recipe).propagation
        same = {"classifier": plain.classifier}
        assert told.propagation.model_copy(update=same) == plain


def test_what_a_recipe_is_tested_with_already_shares_its_scores(plan):
    assert plan.runs.scores(run("net+label-propagation")) == plan.runs.scores(run("net"))
    found = plan.runs.scores(run("net+simpleshot"))
    assert found.file.endswith("/net/s0/5way-1shot-classifiers.csv")
    assert found.column == "simpleshot"


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
        (
            "recipe: ep-001+label-propagation}",
            "recipe: ep-001+label-propagatio}",
            "unknown entry of classifiers.yaml 'label-propagatio'; did you mean",
        ),
        (
            "{recipe: net, baseline: EP}",
            "{recipe: net, baseline: epnett}",
            "unknown row of ours or recipe 'epnett'; did you mean 'epnet'?",
        ),
    ],
)
def test_a_mistake_in_a_table_of_classifiers_is_told(config, old, new, said):
    file = config / "tables" / "classifiers.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(said)):
        Plan(config, "demo").check()


def narrowed(config, parts):
    """The demo with other parts of tables."""
    put(config, "scales/demo.yaml", "parts", parts)
    return Plan(config, "demo")


@pytest.mark.parametrize("table", ["classifiers", "with-ep"])
def test_scale_paper_shows_epnets_networks_and_data_sets_and_the_demo_one_of_each(table):
    def shown(scale):
        p = plan_of(scale)
        runs = [at.run for at in p.tables.cells(table)]
        return {(run.backbone, run.dataset) for run in runs}

    p = plan_of("paper")
    data = (p.registry.scale.columns["mini"], p.registry.scale.columns["tiered"])
    networks = {cell.run.backbone for cell in p.tables.cells("main") if cell.row.name == "EPNet"}
    assert shown("paper") == set(itertools.product(networks, data))
    assert shown("demo") == {("conv4", "glyph-mini")}


@pytest.mark.parametrize("table", ["classifiers", "with-ep"])
def test_rows_differ_from_those_of_the_same_network_and_data(table):
    for at in plan_of("paper").tables.cells(table):
        if at.baseline is not None:
            same = replace(at.baseline, recipe=at.run.recipe)
            assert same == at.run


def test_a_part_of_a_table_is_all_that_a_scale_shows_of_it(config):
    table = narrowed(config, {"classifiers": {"blocks": ["EPNet"]}}).tables.table("classifiers")
    whole = plan_of("paper").tables.table("classifiers")
    assert [block.name for block in table.blocks] == ["EPNet"]
    assert table.columns == whole.columns
    rows = narrowed(config, {"placement": {"rows": ["000", "111"]}}).tables.table("placement")
    assert [row.name for block in rows.blocks for row in block.rows] == ["111", "000"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"with-ep": {"blocks": ["Net"]}}, "demo.yaml, parts.with-ep.blocks: unknown block 'Net'"),
        (
            {"placement": {"rows": ["111"]}},
            "parts.placement.rows: the differences of '111' are to '000', which is not listed; add",
        ),
    ],
)
def test_a_part_that_no_table_has_is_told(config, part, said):
    with pytest.raises(UserError, match=re.escape(said)):
        narrowed(config, part).check()


OWN_CLASS = """
from epcore.classifiers import Prototypes


class Mine(Prototypes):
    pass
"""


def test_a_class_of_a_user_s_that_cannot_be_imported_stops_its_own_rows_alone(
    config, tmp_path, monkeypatch
):
    entry = {"label": "mine", "classifier": {"name": "module_of_mine.Mine"}}
    put(config, "classifiers.yaml", "mine", entry)
    rows = "blocks/CONV-4/rows"
    row = {"name": "own", "recipe": "net+mine"}
    main = yaml.safe_load((config / "tables/main.yaml").read_text(encoding="utf-8"))
    (block,) = (block for block in main["blocks"] if block["name"] == "CONV-4")
    put(config, "tables/main.yaml", rows, [*block["rows"], row])

    def tested(plan):
        plan.check()
        return {
            (at.row.name, name)
            for name in ("main", "classifiers")
            for at in plan.tables.cells(name)
        }

    without = Plan(config, "demo")
    assert "cannot be imported (ModuleNotFoundError" in without.registry.recipes.unusable["mine"]
    check_methods(without, without.tested.recipes)
    (tmp_path / "module_of_mine.py").write_text(OWN_CLASS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    loaded = Plan(config, "demo")
    check_methods(loaded, loaded.tested.recipes)
    assert tested(loaded) - tested(without) == {("mine", "classifiers"), ("own", "main")}
    assert tested(without) == tested(plan_of("demo"))
