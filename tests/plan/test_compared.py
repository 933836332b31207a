"""What compared methods are told, which of them share a training, and where their cells stand."""

import shutil
from pathlib import Path

import pytest
import yaml
from plans import DELETED, plan_of, put

from epcore.commands.check_methods import check_methods
from epcore.config.compared import of_shot
from epcore.errors import UserError
from epcore.plan import Plan
from epcore.plan.run import Run

CONFIG = Path(__file__).parents[2] / "config"
WHERE = ("mini-imagenet", "conv4")
SCALES = sorted(path.stem for path in (CONFIG / "scales").glob("*.yaml"))


def plan(scale="paper", config=CONFIG):
    return plan_of(scale) if config == CONFIG else Plan(config, scale)


def run(recipe, protocol="5way-1shot"):
    return Run("mini", "conv4", recipe, 0, protocol)


@pytest.mark.parametrize("scale", SCALES)
def test_recipes_that_are_trained_and_selected_alike_share_a_checkpoint(scale):
    """And no others: by the same settings, written out."""
    compared = plan(scale).compared
    registry = plan(scale).registry

    def told(name):
        method = registry.recipes.compared_method(name)
        return (
            str(method.method),
            str(method.pretrained),
            str(method.training),
            compared.validation(name, 1),
        )

    for name in compared.trained:
        for other in compared.trained:
            same = compared.trained_as(name) == compared.trained_as(other)
            assert same == (told(name) == told(other)), (name, other)


def test_statistics_in_tests_alone_take_no_other_training():
    compared = plan().compared
    assert compared.trained_as("relation-net-batch-statistics") == "relation-net"
    assert compared.trained_as("relation-net-selected-on-test") == "relation-net-selected-on-test"
    assert compared.trained_as("maml-batch-statistics") == "maml-batch-statistics"


@pytest.mark.parametrize(("shot", "way"), [(1, 30), (5, 20), (10, 20)])
def test_protonet_trains_with_the_way_of_the_paper(shot, way):
    assert plan().compared.meta_train(*WHERE, "protonet", 0, shot).training.way == way


@pytest.mark.parametrize(("shot", "queries"), [(1, 15), (5, 10)])
def test_relation_net_trains_with_the_queries_of_its_two_scripts(shot, queries):
    assert plan().compared.meta_train(*WHERE, "relation-net", 0, shot).training.queries == queries
    assert plan().compared.meta_train(*WHERE, "relation-net", 0, shot).episode == (
        5, shot, queries,
    )  # fmt: skip


@pytest.mark.parametrize("tiered", ["tiered-imagenet", "tiered-imagenet-pickles"])
@pytest.mark.parametrize(
    ("recipe", "shot", "mini", "on_tiered"),
    [
        ("tpn", 1, (210_000, 10_000), (210_000, 25_000)),
        ("egnn", 5, (100_000, 15_000), (200_000, 30_000)),
        ("egnn-inductive", 5, (100_000, 15_000), (200_000, 30_000)),
        ("gnn", 1, (80_000, 15_000), (80_000, 15_000)),
        ("gnn", 5, (90_000, 15_000), (90_000, 15_000)),
        ("maml", 5, (60_000, 60_000), (60_000, 60_000)),
    ],
)
def test_the_steps_of_a_training_and_until_its_rate_is_halved(
    recipe, shot, mini, on_tiered, tiered
):
    """They are those of the authors' code, by data set and shot."""
    for dataset, expected in (("mini-imagenet", mini), (tiered, on_tiered)):
        stage = plan().compared.meta_train(dataset, "conv4", recipe, 0, shot)
        found = (
            stage.training.epochs * stage.training.steps,
            stage.training.halve_every * stage.training.steps,
        )
        assert found == expected


def test_what_a_scale_shortens_is_shorter_on_every_data_set(tmp_path):
    shutil.copytree(CONFIG, tmp_path / "config")
    scale = "extends: paper\ncompared: {training: {epochs: 3}}\n"
    (tmp_path / "config/scales/other.yaml").write_text(scale)
    compared = plan("other", tmp_path / "config").compared
    stage = compared.meta_train("tiered-imagenet", "conv4", "egnn", 0, 1)
    assert (stage.training.epochs, stage.training.halve_every) == (3, 30)


@pytest.mark.parametrize(("shot", "steps"), [(1, 300), (5, 90), (10, 90)])
def test_a_scale_may_give_each_shot_its_own_steps(tmp_path, shot, steps):
    shutil.copytree(CONFIG, tmp_path / "config")
    steps_of_shots = "{steps: {1-shot: 300, 5-shot: 90}}"
    scale = f"extends: demo\ncompared: {{methods: {{gnn: {{training: {steps_of_shots}}}}}}}\n"
    (tmp_path / "config/scales/other.yaml").write_text(scale)
    compared = plan("other", tmp_path / "config").compared
    assert compared.meta_train(*WHERE, "gnn", 0, shot).training.steps == steps


@pytest.mark.parametrize("shot", [1, 5])
def test_mamls_gradient_is_clipped_as_by_its_authors_whose_loss_is_larger(shot):
    """Theirs is clipped at 10; its loss is the sum over 75 queries, divided by the shots."""
    clip = plan().compared.meta_train(*WHERE, "maml", 0, shot).training.clip
    assert clip.each * 75 / shot == pytest.approx(10, rel=0.005)


@pytest.mark.parametrize(("shot", "trained"), [(1, 5), (5, 10), (10, 10)])
def test_tpn_may_be_trained_with_more_shots_than_it_is_tested_with(shot, trained):
    compared = plan().compared
    told = compared.meta_train(*WHERE, "tpn-higher-shot", 0, shot)
    assert (told.shot, told.training.shot) == (shot, trained)
    assert compared.validation("tpn-higher-shot", shot) == f"val-5way-{shot}shot"
    usual = compared.meta_train(*WHERE, "tpn", 0, shot).model_dump()
    assert "shot" not in usual["training"]
    assert compared.trained_as("tpn-higher-shot") != compared.trained_as("tpn")


@pytest.mark.parametrize("shot", [1, 5])
@pytest.mark.parametrize("name", ["tpn-semi", "masked-k-means", "lst"])
def test_a_training_with_unlabeled_images_is_validated_with_unlabeled_images(name, shot):
    assert plan().compared.validation(name, shot) == f"val-5way-{shot}shot-u20"


def test_the_epoch_is_chosen_on_validation_classes_but_where_the_leak_is_measured():
    p = plan()
    novel = [
        name for name in p.compared.trained if not p.compared.validation(name, 1).startswith("val-")
    ]
    assert novel == ["relation-net-selected-on-test"]
    assert p.compared.validation(novel[0], 5) == "5way-5shot"


@pytest.mark.parametrize(
    ("protocol", "shot"), [("5way-1shot", 1), ("5way-5shot", 5), ("5way-1shot-q1", 1)]
)
def test_a_protocol_is_tested_with_the_training_of_its_shot(protocol, shot):
    found = plan().compared.checkpoint(run("tpn", protocol))
    assert (found.checkpoint, found.recipe) == (f"meta-{shot}shot", "tpn")


def test_a_scale_shortens_the_training_of_a_method_and_of_what_extends_it():
    p = plan("demo")
    short, long = (
        found.compared.meta_train(*WHERE, "maml-first-order", 0, 1).training
        for found in (p, plan())
    )
    maml = p.compared.meta_train(*WHERE, "maml", 0, 1).training
    assert (short.epochs, short.steps) == (maml.epochs, maml.steps)
    assert (long.epochs, long.steps) == (60, 1000)


def literature(scale, table):
    """Rows that are printed and, at this scale, rerun: (block, row)."""
    p = plan(scale)
    return {
        (cell.block, cell.row)
        for cell in p.tables.measured(table)
        if any(f"/{recipe}/" in cell.scores.file for recipe in p.registry.recipes.compared)
    }


def test_rows_of_the_literature_are_rerun_at_the_scales_that_say_so():
    rows = {row for _, row in literature("paper", "main")}
    assert {"Matching", "MAML", "ProtoNet", "GNN"} <= {name.split(" ")[0] for name in rows}
    assert literature("demo", "main") == set()


def test_discriminative_has_a_network_of_its_own_and_no_cell_where_a_scale_lacks_it(config):
    """A ResNet-34, which learns the classes of images as they are; beside EPNet's ResNet-12."""
    p = plan("paper")
    cells = [cell for cell in p.tables.cells("ten-shot") if cell.row.name == "Discriminative"]
    assert {(cell.run.backbone, cell.baseline.backbone) for cell in cells} == {
        ("resnet34", "resnet12")
    }
    network = p.runs.checkpoint(cells[0].run)
    assert (network.backbone, network.checkpoint) == ("resnet34", "pretrain")
    stage = p.runs.pretrain(network.dataset, network.backbone, network.recipe, 0)
    settings = stage.pretraining
    assert (settings.heads, settings.rotated_copies, settings.rotation_weight) == (
        "linear", False, 0,
    )  # fmt: skip
    assert not stage.propagation.embedding
    folder = config()
    put(folder, "scales/demo.yaml", "compared/tables", ["ten-shot"])
    rows = {cell.row.name for cell in plan("demo", folder).tables.cells("ten-shot")}
    assert ("TADAM" in rows, "Discriminative" in rows) == (True, False)


@pytest.fixture
def config(config):
    """A copy whose compared.yaml can be changed: config(maml={...})."""

    def change(**entries):
        for name, values in entries.items():
            for key, value in values.items():
                put(config, "compared.yaml", f"{name}/{key}", value)
        return config

    return change


def test_a_method_that_does_not_exist_is_told_with_the_nearest(config):
    folder = config(tpn={"method": {"name": "tnp"}})
    put(folder, "scales/demo.yaml", "compared", DELETED)
    loaded = plan("demo", folder)
    with pytest.raises(UserError, match=r"compared\.yaml.*tpn.*did you mean 'tpn'"):
        check_methods(loaded, loaded.registry.recipes.names)


def test_a_setting_that_does_not_exist_is_told(config):
    folder = config(tpn={"trainings": {}})
    with pytest.raises(UserError, match=r"compared\.yaml.*trainings"):
        plan("demo", folder)


@pytest.mark.parametrize(
    ("datasets", "told"),
    [
        ({"tiered-imagnet": {"training": {"epochs": 3}}}, r"tpn\.datasets.*'tiered-imagenet'"),
        (
            {"mini-imagenet": {"training": {"epoch": 3}}},
            r"tpn, on mini-imagenet: unknown key 'training\.epoch'",
        ),
    ],
)
def test_mistakes_in_a_data_set_s_own_settings_are_told(config, datasets, told):
    folder = config(tpn={"datasets": datasets})
    with pytest.raises(UserError, match=rf"compared\.yaml.*{told}"):
        plan("demo", folder)


@pytest.mark.parametrize(
    ("dataset", "shot", "rate", "dropout"),
    [
        ("mini-imagenet", 1, 2.739071e-4, 0.307651),
        ("mini-imagenet", 5, 4.102361e-4, 0.300299),
        ("tiered-imagenet", 1, 8.659053e-4, 0.475126),
        ("tiered-imagenet", 5, 6.110314e-4, 0.415158),
    ],
)
def test_settings_of_leo_depend_on_data_set_and_shot_as_its_authors_have_them(
    dataset, shot, rate, dropout
):
    compared = plan("paper").compared
    trained = compared.meta_train(dataset, "wrn", "leo", 0, shot)
    assert trained.training.learning_rate == rate
    assert trained.method["dropout"] == dropout
    tested = compared.meta_test(dataset, "wrn", "leo", f"5way-{shot}shot")
    assert tested.method == trained.method


def test_a_pretrained_network_sees_images_as_it_was_pretrained():
    """The authors' view for WRN resizes to 92 pixels and cuts out 80 of them."""
    registry = plan("paper").registry
    compared = plan("paper").compared
    expected = registry.recipes.resolve("net", "wrn").view
    assert float(expected.crop) < float(expected.resize)
    assert compared.meta_train("mini-imagenet", "wrn", "leo", 0, 1).view == expected
    assert compared.meta_test("mini-imagenet", "wrn", "leo", "5way-1shot").view == expected
    from_scratch = compared.meta_test("mini-imagenet", "conv4", "tpn", "5way-1shot").view
    assert (from_scratch.resize, from_scratch.crop) == (1, 1)


def test_a_value_may_be_one_for_each_shot_and_others_have_that_of_the_largest():
    settings = {"a": {"1-shot": 3, "5-shot": {"b": 4}}, "c": {"1-shot": 1, "b": 2}, "d": [5]}
    unchanged = {"c": settings["c"], "d": [5]}
    assert of_shot(settings, 1) == {"a": 3} | unchanged
    assert of_shot(settings, 5) == of_shot(settings, 2) == {"a": {"b": 4}} | unchanged


def test_a_mapping_that_is_not_of_shots_alone_is_no_value(config):
    alpha = {"1-shot": 0.5, "five": 0.6}
    loaded = plan("demo", config(tpn={"method": {"name": "tpn", "alpha": alpha}}))
    with pytest.raises(UserError, match=r"tpn, method: alpha: Input should be a valid number"):
        check_methods(loaded, loaded.registry.recipes.names)


def test_a_scale_may_change_what_is_special_to_a_data_set(config):
    folder = config()
    changes = {"training": {"epochs": 4}, "datasets": {"cub": {"training": {"epochs": 3}}}}
    put(folder, "scales/paper.yaml", "compared/methods", {"tpn": changes})
    compared = plan("paper", folder).compared
    epochs = {"mini-imagenet": 4, "tiered-imagenet": 4, "cub": 3}
    for dataset, number in epochs.items():
        assert compared.meta_train(dataset, "conv4", "tpn", 0, 1).training.epochs == number
    halved = [compared.meta_train(d, "conv4", "tpn", 0, 1).training.halve_every for d in epochs]
    assert halved == [10, 25, 10]


def test_a_method_may_start_from_a_pretrained_network():
    """It is part of what its checkpoint took to train."""
    runs = plan("demo").runs
    where = ("glyph-mini", "resnet12")
    start = runs.start(*where, "mtl", 0)
    assert start == runs.checkpoint(Run(*where, "rot-lp", 0, "5way-1shot"))
    assert runs.start(*where, "can", 0) is None
    trained = runs.trainings(runs.checkpoint(Run(*where, "mtl", 0, "5way-1shot")))
    assert [step.phase for step in trained] == ["pretraining", "episodes, 1-shot"]
    assert [step.checkpoint for step in trained][:1] == runs.start_files(*where, "mtl", 0)


def test_a_start_that_does_not_fit_the_method_is_told(config):
    loaded = plan("demo", config(can={"pretrained": "net"}))
    with pytest.raises(UserError, match="can starts from random weights; remove `pretrained`"):
        check_methods(loaded, loaded.registry.recipes.names)


def test_a_method_without_training_is_tested_from_its_pretrained_network():
    runs = plan("paper").runs
    run = Run("mini-imagenet", "wrn", "transmatch", 0, "5way-1shot-u100")
    start = runs.start(run.dataset, run.backbone, run.recipe, 0)
    assert start.recipe == "cosine-heads"
    assert runs.checkpoint(run) == start
    assert [step.phase for step in runs.trainings(start)] == ["pretraining"]
    tested = runs.compared.meta_test(run.dataset, run.backbone, run.recipe, run.protocol)
    assert (tested.method["steps"], tested.episodes) == (1280, 100)
    five = runs.compared.meta_test(run.dataset, run.backbone, run.recipe, "5way-5shot-u100")
    assert five.method["steps"] == 25 * 64
    assert {"transmatch", "transmatch-val"}.isdisjoint(runs.compared.trained)


@pytest.mark.parametrize(
    ("entry", "key", "value", "told"),
    [
        ("mtl", "training", DELETED, "mtl is trained on episodes; add `training`"),
        ("transmatch", "training", {"epochs": 1, "steps": 1, "tasks": 1, "way": 5, "queries": 1,
            "learning_rate": 0.1, "weight_decay": 0, "halve_every": 1},
            "transmatch is tuned in its test alone; remove `training`"),
        ("transmatch", "pretrained", None, "without `training` it needs `pretrained`"),
    ],
)  # fmt: skip
def test_what_a_method_starts_its_test_from_is_checked(config, entry, key, value, told):
    def check(folder):
        loaded = plan("paper", folder)
        check_methods(loaded, loaded.registry.recipes.names)

    folder = config(**{entry: {key: value}})
    with pytest.raises(UserError, match=rf"compared\.yaml.*{entry}.*{told}"):
        check(folder)


def test_what_was_trained_on_validation_classes_chooses_nothing_on_them(config):
    folder = config(mtl={"pretrained": "cosine-heads-val"})
    put(folder, "recipes.yaml", "recipes/net/pretraining", {"with_validation": True})
    runs = plan("paper", folder).runs
    with pytest.raises(UserError, match=r"recipe mtl: .* pretraining of cosine-heads-val"):
        runs.start("mini-imagenet", "resnet12", "mtl", 0)
    run = Run("mini-imagenet", "conv4", "net", 0, "5way-1shot")
    with pytest.raises(UserError, match=r"recipe net: .*set `tested: pretrained`"):
        runs.checkpoint(run)


def test_a_row_of_another_backbone_is_compared_with_a_row_of_the_blocks(config):
    folder = config()
    row = {"name": "DCO", "backbone": "resnet12", "recipe": "metaoptnet-svm", "baseline": "EPNet"}
    path = folder / "tables/n-way.yaml"
    table = yaml.safe_load(path.read_text(encoding="utf-8"))
    table["blocks"][0]["rows"] = [row, {"name": "EPNet", "recipe": "epnet"}]
    path.write_text(yaml.safe_dump(table), encoding="utf-8")
    cell = plan("demo", folder).tables.cells("n-way")[0]
    assert (cell.run.backbone, cell.baseline.backbone) == ("resnet12", "wrn")
