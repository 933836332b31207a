"""Which numbers plots draw and which trainings curves show, at every scale."""

import itertools
import re
from collections import defaultdict
from pathlib import Path

import pytest
from plans import plan_of, put

from epcore.config.names import NAME
from epcore.errors import UserError
from epcore.plan import Plan, paths
from epcore.plan.table_files import protocol_of

CONFIG = Path(__file__).parents[2] / "config"
SCALES = ("demo", "small", "paper", "grocery")
NETWORKS = ("Conv-4", "ResNet-12", "WRN-28-10")


def points(name, scale="demo", config=None):
    plan = plan_of(scale) if config is None else Plan(config, scale)
    return plan.plots.plot(name).model_dump(mode="json")["points"]


def positions(name):
    """(backbone, data set, episodes, series) -> x of its numbers."""
    found = defaultdict(set)
    for point in points(name, "paper"):
        panel = (point["backbone"], point["dataset"], point["episodes"], point["series"])
        found[panel].add(point["x"])
    return found


def test_shots_are_those_of_the_main_table_and_of_ten_shots():
    found = positions("by-shot")
    for network, dataset in itertools.product(NETWORKS, ("mini", "tiered", "cub")):
        ten = set() if network == "Conv-4" else {10}
        assert {1, 5} | ten <= found[network, dataset, "5-way", "EPNet"]
        assert dataset == "cub" or {1, 5} <= found[network, dataset, "5-way", "--Net"]
    assert {panel[2:] for panel in found} == {("5-way", "EPNet"), ("5-way", "--Net")}


def test_ways_are_those_of_the_main_table_and_of_more_classes():
    found = positions("by-way")
    for shot in ("1-shot", "5-shot"):
        assert {5, 10, 15, 20} <= found["WRN-28-10", "mini", shot, "EPNet"]
        assert 5 in found["WRN-28-10", "mini", shot, "--Net"]
    assert {panel[:2] for panel in found} == {("WRN-28-10", "mini")}  # others have 5 classes alone


def test_unlabeled_images_are_none_20_and_100_for_every_network():
    found = positions("by-unlabeled")
    shots = ("5-way 1-shot", "5-way 5-shot")
    series = ("EPNet", "--Net")
    for panel in itertools.product(NETWORKS, ("mini", "tiered"), shots, series):
        assert {0, 20, 100} <= found[panel]


@pytest.mark.parametrize("scale", SCALES)
def test_a_number_that_is_drawn_is_what_its_axis_and_its_line_say(scale):
    plan = plan_of(scale)
    protocols, settings = plan.registry.protocols, plan.plots.settings
    for name in plan.plots.jobs:
        plot = settings.plots[name]
        lines = {each.label: each.recipe for each in plot.series or settings.series}
        places = {
            (table, block.name, row.name, column.name): (row, column)
            for table in plan.plots.tables(name)
            for block, row, column in plan.tables.table(table).places
        }
        for point in points(name, scale):
            keys = ("table", "block", "row", "column")
            row, column = places[*(point[key] for key in keys)]
            protocol = protocols[protocol_of(row, column)]
            assert row.recipe == lines[point["series"]]
            assert (point["dataset"], point["x"]) == (column.dataset, getattr(protocol, plot.axis))
            assert plot.axis == "unlabeled" or protocol.unlabeled == 0
            assert protocol.labeled is protocol.dirichlet is None


@pytest.mark.parametrize("scale", SCALES)
def test_a_difference_is_to_the_other_line_at_the_same_place(scale):
    plan = plan_of(scale)
    for name in plan.plots.jobs:
        drawn = points(name, scale)
        place = ("backbone", "dataset", "episodes", "x")
        places = {(*(p[key] for key in place), p["series"]) for p in drawn}
        assert len(places) == len(drawn)
        compared = [point for point in drawn if point["baseline"]]
        assert bool(compared) == (plan.plots.settings.plots[name].series is None)
        for point in compared:
            assert {point["series"], point["baseline"]} == {"EPNet", "--Net"}
            assert (*(point[key] for key in place), point["baseline"]) in places


def test_a_scale_without_the_numbers_has_no_such_plot():
    assert plan_of("grocery").plots.jobs.keys() == {"by-shot", "classifiers-by-shot"}
    assert plan_of("small").plots.jobs.keys() == {
        "by-shot", "by-way", "by-unlabeled", "classifiers-by-shot",
    }  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
def test_curves_show_every_training_behind_the_tables_of_all_on_few_rows_each(scale):
    plan = plan_of(scale)
    of_fs = plan.imagenet_fs.curves(plan.tested.imagenet_fs) if plan.imagenet_fs else ()
    stages = {name: stage for name, stage in plan.curves.stages.items() if name not in of_fs}
    shown = {training.checkpoint for stage in stages.values() for training in stage.trainings}
    needed = set()
    tables = {name: plan.tables.table(name) for name in plan.main_tables}
    for table in (name for name, table in tables.items() if table.imagenet_fs is None):
        for cell in plan.tables.measured(table):
            checkpoint = cell.checkpoint_meta.replace(".meta.json", ".pt")
            needed.add(checkpoint)
            _, _, _, dataset, backbone, recipe, seed, _ = checkpoint.split("/")
            if plan.compared.has(recipe):  # trained in one go, perhaps behind a pretraining
                needed.update(plan.runs.start_files(dataset, backbone, recipe, int(seed[1:])))
                continue
            first = plan.runs.owner("pretraining", backbone, recipe)
            pretrained = checkpoint.replace(f"/{recipe}/{seed}/", f"/{first}/{seed}/")
            needed.add(re.sub(r"[^/]*\.pt", "pretrain.pt", pretrained))
    searched = map(plan.runs.checkpoint, plan.figures.alpha_runs())
    needed |= {plan.runs.path(paths.CHECKPOINT, each) for each in searched}
    assert shown == needed
    for name, stage in stages.items():
        trainings = stage.trainings
        assert re.fullmatch(NAME, name)
        assert len({training.recipe for training in trainings}) <= 6
        assert len({Path(t.checkpoint).parents[2] for t in trainings}) == 1
        phases = [t.phase for t in trainings if t.recipe == trainings[0].recipe]
        once = plan.compared.has(trainings[0].recipe)
        expected = ["pretraining", "fine-tuning, 1-shot", "fine-tuning, 5-shot"]
        if once:
            start = plan.registry.recipes.compared_method(trainings[0].recipe).pretrained
            expected = ["pretraining"] * bool(start) + ["episodes, 1-shot", "episodes, 5-shot"]
        assert phases == expected[: len(phases)]
        assert phases


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_curves_show_every_training_of_imagenet_fs(scale):
    plan = plan_of(scale)
    fs, runs = plan.imagenet_fs, plan.tested.imagenet_fs
    curves = fs.curves(runs)
    datasets = {run.dataset for run in fs.scale.runs}
    only_stage_one = {
        f"curves-{dataset}-resnet10-{trained}"
        for dataset in datasets
        for trained in ("rotations", "sgm")
    }
    others = {f"curves-{run.dataset}-{run.network}" for run in fs.scale.runs}
    assert set(curves) == only_stage_one | others
    assert set(curves) <= set(plan.curves.stages) <= set(plan.covered_figures)
    shown = [training for stage in curves.values() for training in stage.trainings]
    assert {training.checkpoint for training in shown} == set(fs.trained_files(runs))
    assert len({(training.checkpoint, training.model) for training in shown}) == len(shown)
    for name, trainings in ((name, stage.trainings) for name, stage in curves.items()):
        assert trainings[0].recipe == "classifier"
        if name in only_stage_one:
            assert len(trainings) == 1
            continue
        for method, number in (("lwof-average", 5), ("lwof-attention", 5), ("wdae-gnn", 1)):
            told = fs.generator(method).shots
            models = [t.model for t in trainings if t.recipe == method]
            assert models == [f"-{shots}shot" for shots in told]
            assert len(models) == number


def test_a_smaller_network_is_said_so_in_the_same_words_wherever_it_is_named(config):
    size = "WRN-28-10 ×1/5, depth ×1/4"
    path = config / "figures.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("backbone: conv4", "backbone: wrn"))
    demo, paper = Plan(config, "demo"), Plan(config, "paper")
    heading, *_ = demo.tables.stage("n-way").headings
    assert heading == size
    assert {point["backbone"] for point in points("by-way", config=config)} == {size}
    assert demo.curves.stages["curves-glyph-mini-wrn"].note.endswith(size)
    assert size in demo.facts()["backbones"]
    assert demo.figures.alpha().note.endswith(size)
    assert demo.figures.interpolation().note.endswith("ResNet-12 ×1/8")
    assert paper.figures.alpha().note.endswith(" WRN-28-10")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("series/0/recipe", "eppnet", "series: unknown recipe 'eppnet'; did you mean 'epnet'?"),
        ("plots/by-shot/tables", ["cubs"], "by-shot, tables: unknown table 'cubs'"),
    ],
)
def test_a_mistake_in_the_plots_is_named(config, path, value, said):
    put(config, "plots.yaml", path, value)
    with pytest.raises(UserError, match=re.escape(said)):
        Plan(config, "demo").check()
