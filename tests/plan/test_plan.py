"""The plan: what is asked for becomes what the stages are told, and nothing else."""

import copy
import re
import subprocess
import sys
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import pytest
import yaml
from plans import flat, plan_of, put

from epcore.config.load import extend, merge
from epcore.config.names import NAME
from epcore.errors import UserError
from epcore.plan import Plan
from epcore.settings import config_text
from epcore.training.config import FinetuneConfig, PretrainConfig

CONFIG = Path(__file__).parents[2] / "config"
SCALES = sorted(
    path.stem for folder in ("scales", "examples") for path in (CONFIG / folder).glob("*.yaml")
)
BACKBONES = ("conv4", "resnet12", "wrn")
PRETRAINED = ("glyph-mini", "omniglot")


def plan(scale="demo", config=CONFIG):
    return plan_of(scale) if config == CONFIG else Plan(config, scale)


def texts(plan):
    """All that the stages are told: (stage, names of the job) -> text."""
    registry, runs, figures = plan.registry, plan.runs, plan.figures
    configs = {("data", name): plan.data.build(name) for name in registry.datasets}
    configs |= {("fetch", name): plan.data.fetch(name) for name in registry.sources}
    configs |= {("episodes", name): plan.data.episodes(name) for name in registry.protocols}
    configs |= {("table", "main"): plan.tables.stage("main")}
    configs |= {("alpha",): figures.alpha(), ("claims",): plan.claims.stage()}
    for name in ("two-moons", "decision-boundary"):
        configs |= {(name,): plan.figure_jobs[name].config}
    configs |= {("environment",): plan.environment()}
    if figures.interpolation_runs():
        configs |= {("interpolation",): figures.interpolation()}
    configs |= {("plot", name): plan.plots.plot(name) for name in plan.plots.settings.plots}
    configs |= {("curves", name): plan.curves.stages[name] for name in plan.curves.stages}
    if "ablation" in plan.tables.shown:
        configs |= {("ablation",): figures.of_table("ablation")}
    for backbone in registry.scale.backbones:
        for recipe in registry.recipes.names:
            names = (backbone, recipe)
            configs |= {("embed", *names): runs.embed(*names)}
            configs |= {("evaluate", *names): runs.evaluate(*names)}
            configs |= {("finetune", *names, 0, 5): runs.finetune(*names, 0, 5)}
            for name in PRETRAINED:
                configs |= {("pretrain", name, *names, 0): runs.pretrain(name, *names, 0)}
    if (large := plan.imagenet_fs) is not None:
        configs |= {("exemplars",): large.exemplars()}
        for name in large.settings.networks:
            configs |= {("classifier", name): large.classifier(name, 0)}
            configs |= {("features", name): large.features(name)}
        configs |= {("generator", name): large.generator(name) for name in large.trained_methods}
        configs |= {("trials", name): large.evaluate(name) for name in large.methods}
    return {key: config_text(config) for key, config in configs.items()}


@cache
def unchanged_texts():
    return texts(plan())


def resolved(recipe, backbone="conv4", scale="paper"):
    settings = (
        plan(scale).registry.recipes.resolve(recipe, backbone).model_dump(exclude={"description"})
    )
    return flat(settings) | {f"view.{k}": Fraction(v) for k, v in settings["view"].items()}


def differences(one, other):
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


# -- what the project's own config says ------------------------------------------------------------


def test_importing_the_plan_loads_no_heavy_package():
    code = "import sys, epcore.plan; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "epcore.plan.plan" in loaded
    assert not loaded & {"torch", "numpy", "pandas", "scipy", "matplotlib", "PIL", "snakemake"}


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_resolves_every_recipe_for_every_backbone(scale):
    loaded = plan(scale)
    assert {"epnet", "net", "epnet-paper", "net-paper"} <= set(loaded.registry.recipes.names)
    for recipe in loaded.registry.recipes.names:
        for backbone in BACKBONES:
            assert loaded.registry.recipes.resolve(recipe, backbone).description


@pytest.mark.parametrize("scale", ["demo", "paper", "grocery"])
def test_the_main_table_has_a_cell_of_every_row_of_ours_in_every_column_of_the_scale(scale):
    """Scale paper also runs the rows of the literature that have a method here."""
    table = yaml.safe_load((CONFIG / "tables/main.yaml").read_text(encoding="utf-8"))
    has = plan(scale).registry.scale
    run = {"recipe", "method"} if scale == "paper" else {"recipe"}
    expected = [
        (block["name"], row["name"], column["name"])
        for block in table["blocks"]
        for row in block["rows"]
        for column in table["columns"]
        if block["backbone"] in has.backbones
        and has.columns.get(column["dataset"])
        and (scale != "demo" or column["dataset"] == "mini")
        and run & {*row}
    ]
    cells = plan(scale).tables.measured("main")
    assert [(cell.block, cell.row, cell.column) for cell in cells] == expected
    assert ("CONV-4", "EPNet", "mini1") in expected


def test_every_segment_of_a_path_is_a_readable_name():
    for cell in plan().tables.measured("main"):
        for path in (cell.scores.file, cell.checkpoint_meta):
            folders, file = path.split("/")[:-1], path.split("/")[-1]
            assert folders[:2] == ["results", "demo"]
            for segment in [*folders, file.split(".")[0]]:
                assert re.fullmatch(NAME, segment), path


def test_a_cell_names_the_scores_of_its_episodes_and_the_checkpoint_of_its_shot():
    cells = {(c.block, c.row, c.column): c for c in plan().tables.measured("compared")}
    cell = cells["CONV-4", "--Net", "tier5"]
    assert cell.scores.file == "results/demo/scores/glyph-tiered/conv4/net/s0/5way-5shot.csv"
    assert cell.checkpoint_meta == (
        "results/demo/models/glyph-tiered/conv4/net/s0/finetune-5shot.meta.json"
    )


def test_the_interpolation_needs_nothing_that_the_main_table_has_not():
    for scale in ("demo", "small", "paper"):
        runs = {shown.run for shown in plan(scale).tables.cells("main")}
        drawn = plan(scale).figures.interpolation_runs()
        assert len(drawn) == 2
        assert set(drawn) <= runs


# Where the value stands, the authors' code, the paper's text: docs/paper-vs-code.md by row.
READINGS = [
    ("propagation.embedding", True, True),
    ("propagation.classifier", "label-propagation", "label-propagation"),
    ("propagation.part", "full", "full"),
    ("propagation.bandwidth", "std", "std"),  # A1: the text's Var is a slip
    ("propagation.embedding_alpha", 0.5, 0.5),  # A10
    ("propagation.label_alpha", 0.2, 0.2),  # A10
    ("propagation.normalize_labels", True, False),  # A11
    ("propagation.query_logits", "log-scores", "log-scores"),  # A13
    ("pretraining.rotated_copies", True, True),  # A26
    ("pretraining.schedule", "plateau", "plateau"),  # A33
    ("finetuning.schedule", "plateau", "plateau"),  # A33
    ("pretraining.rotation_input", "features", "embeddings"),  # A20
    ("pretraining.rotation_weight", 1, 1),  # A25
    ("pretraining.epochs", 200, 100),  # A31
    ("pretraining.learning_rate", 0.1, 0.1),  # A31
    ("pretraining.batch_size", 128, 128),  # A39
    ("pretraining.momentum", 0.9, 0.9),  # A30
    ("pretraining.weight_decay", 5e-4, 5e-4),  # A30
    ("pretraining.plateau.metric", "accuracy", "loss"),  # A33
    ("pretraining.plateau.patience", 10, 10),  # A33
    ("pretraining.plateau.factor", 0.1, 0.1),  # A33
    ("pretraining.stop_ratio", 1e-4, 1e-4),  # A34
    ("finetuning.class_input", "features", "embeddings"),  # A22
    ("finetuning.class_weight", 0.1, 0.5),  # A23
    ("finetuning.epochs", 200, 200),  # A32
    ("finetuning.episodes_per_epoch", 600, 600),  # A32
    ("finetuning.learning_rate", 0.001, 0.001),  # A32
    ("finetuning.momentum", 0.9, 0.9),  # A30
    ("finetuning.weight_decay", 5e-4, 5e-4),  # A30
    ("finetuning.plateau.metric", "accuracy", "loss"),  # A33
    ("finetuning.plateau.patience", 10, 10),  # A33
    ("finetuning.plateau.factor", 0.1, 0.1),  # A33
    ("finetuning.stop_ratio", 1e-4, 1e-4),  # A34
    ("finetuning.way", 5, 5),
    ("finetuning.queries", 15, 15),  # A43
    ("augmentation.pretraining", ("flip",), ()),  # A53
    ("augmentation.finetuning", (), ()),  # A53
    ("view.resize", 1, 1),  # A51
    ("view.crop", 1, 1),  # A51
    ("tested", "finetuned", "finetuned"),
    ("protocol", "official", "paper"),
]
LITERAL = {
    "propagation.bandwidth": "var",  # A1
    "propagation.query_logits": "scores",  # A13
    "protocol": "paper-literal",
}
FOR_WRN = [  # A52; the text has 84x84 and "the standard data augmentation methods"
    ("augmentation.pretraining", ("flip", "crop", "jitter"), ("flip", "crop", "jitter")),
    ("augmentation.finetuning", ("flip",), ("flip",)),
    ("view.resize", Fraction(92, 84), 1),
    ("view.crop", Fraction(80, 84), 1),
]


@pytest.mark.parametrize("backbone", BACKBONES)
def test_the_protocols_are_the_two_readings_and_no_setting_is_left_unread(backbone):
    special = FOR_WRN if backbone == "wrn" else []
    official = {path: code for path, code, text in [*READINGS, *special]}
    paper = {path: text for path, code, text in [*READINGS, *special]}
    assert resolved("epnet", backbone) == official
    assert resolved("epnet-paper", backbone) == paper
    assert resolved("epnet-paper-literal", backbone) == paper | LITERAL


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_net_is_epnet_without_embedding_propagation_and_nothing_else(scale):
    for backbone, ending in product(BACKBONES, ("", "-paper", "-paper-literal")):
        epnet, net = (resolved(name + ending, backbone, scale) for name in ("epnet", "net"))
        assert differences(epnet, net) == {"propagation.embedding"}
        assert net["propagation.embedding"] is False


# -- what a change of the config changes -----------------------------------------------------------


def reversed_keys(value):
    if isinstance(value, dict):
        return {key: reversed_keys(below) for key, below in reversed(value.items())}
    return [reversed_keys(below) for below in value] if isinstance(value, list) else value


@pytest.mark.parametrize("scale", ["demo", "grocery"])
def test_the_order_of_yaml_keys_changes_no_text(config, scale):
    """But for that of recipes and methods: the first of those that share a file names it.

    That of classifiers is the order of rows, and of compared methods too the first names a file.
    """
    before = texts(plan(scale, config))
    for path in config.rglob("*.yaml"):
        if path.name in ("classifiers.yaml", "compared.yaml"):
            continue
        content = reversed_keys(yaml.safe_load(path.read_text(encoding="utf-8")))
        if ordered := {"recipes.yaml": "recipes", "imagenet-fs.yaml": "methods"}.get(path.name):
            content[ordered] = dict(reversed(content[ordered].items()))
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    assert texts(plan(scale, config)) == before


# They name the files of every training.
RUNS = ("curves", "environment")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "path", "stages"),
    [
        ("plots.yaml", "plots.by-way.label=Other", {"plot"}),
        ("recipes.yaml", "protocols.official.finetuning.class_weight=0.2", {"finetune"}),
        ("recipes.yaml", "protocols.official.pretraining.weight_decay=0.1", {"pretrain"}),
        (
            "recipes.yaml",
            "protocols.official.propagation.label_alpha=0.3",
            {"pretrain", "finetune", "evaluate", "alpha", "interpolation"},
        ),
        (
            "recipes.yaml",
            "protocols.official.view.crop=3/4",
            {"pretrain", "finetune", "embed"},
        ),
        ("recipes.yaml", "recipes.epnet.description=words", set()),
        ("protocols.yaml", "5way-1shot.queries=14", {"episodes"}),
        ("scales/demo.yaml", "resources.runtime=30", set()),
        ("scales/demo.yaml", "episodes.seed=1", {"episodes", "exemplars"}),
        ("scales/demo.yaml", "note=Other words.", {"table", "claims"}),
        (
            "scales/demo.yaml",
            "backbones.wrn.width=1/10",
            {"pretrain", "finetune", "embed", "table", "plot", "curves"},
        ),
        (
            "datasets.yaml",
            "datasets.glyph-mini.title=other words",
            {"table", "ablation", "alpha", "interpolation", "plot", "curves"},
        ),
        ("datasets.yaml", "datasets.glyph-mini.seed=7", {"data"}),
        ("datasets.yaml", "sources.cub-200-2011.terms=Other words", set()),
        ("datasets.yaml", "sources.cub-200-2011.files.archive.urls=[https://other/cub]", set()),
        ("datasets.yaml", "sources.cub-200-2011.files.archive.size=7", {"fetch"}),
        ("datasets.yaml", "datasets.omniglot.rotations_are_classes=false", {"pretrain"}),
        (
            "backbones.yaml",
            "conv4.label=Four",
            {"table", "ablation", "alpha", "plot", "curves"},
        ),
        (
            "recipes.yaml",
            "recipes.net.tested=pretrained",
            {"table", "interpolation", *RUNS},
        ),
        (
            "recipes.yaml",
            "recipes.net.phases={testing: {embedding: true}}",
            {"evaluate", "environment", "interpolation"},
        ),
        (
            "recipes.yaml",
            "recipes.net.phases={finetuning: {embedding: true}}",
            {"finetune", *RUNS},
        ),
        ("protocols.yaml", "5way-1shot.unlabeled=3", {"episodes", "plot"}),
        ("protocols.yaml", "5way-1shot.episodes=7", {"episodes", "table"}),
        ("protocols.yaml", "5way-1shot.finetuned_shot=5", {"table", "interpolation", *RUNS}),
        ("figures.yaml", "alpha.label_alphas=[0.3]", {"alpha"}),
        ("figures.yaml", "two-moons.noise=0.2", {"two-moons"}),
        ("scales/demo.yaml", "figures.interpolation={backbone: wrn}", {"interpolation"}),
        (
            "imagenet-fs.yaml",
            "methods.wdae-gnn.generator={kind: wdae-gnn, hidden: 2}",
            {"generator", "trials"},
        ),
        ("imagenet-fs.yaml", "methods.wdae-gnn-ep.propagation.step=before", {"trials"}),
        ("imagenet-fs.yaml", "prior=0.6", {"trials"}),
        ("tables/main.yaml", "blocks.0.rows.0.label=Other", {"table"}),
        ("tables/main.yaml", "blocks.0.rows.9.baseline=EPNet", {"table", "plot"}),
        ("tables/main.yaml", "blocks.0.rows.9.unlabeled=20", {"table", "plot"}),
        ("tables/main.yaml", "blocks.0.rows.9.paper=CC+rot", {"table", "claims"}),
    ],
)
def test_a_setting_is_told_to_the_stages_that_read_it_and_to_no_other(config, file, path, stages):
    before = unchanged_texts()
    keys, value = path.split("=")
    put(config, file, keys.replace(".", "/"), yaml.safe_load(value))
    after = texts(plan(config=config))
    assert {call[0] for call in before if before[call] != after[call]} == stages


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_where_rotations_are_classes_no_recipe_rotates_or_asks_for_rotations(scale):
    p = plan(scale)
    for backbone in p.registry.scale.backbones:
        for recipe in p.registry.recipes.names:
            usual, told = (
                flat(p.runs.pretrain(name, backbone, recipe, 0).model_dump(mode="json"))
                for name in PRETRAINED
            )
            without = {"pretraining.rotated_copies": False, "pretraining.rotation_weight": 0}
            assert told == usual | without
            settings = p.runs.pretraining("omniglot", backbone, recipe)
            assert (settings.copies, settings.rotation_weight) == (1, 0)


def test_data_of_ones_own_may_have_classes_of_rotations(config):
    tiles = {"kind": "npz", "title": "tiles", "path": "tiles.npz", "image_size": 28}
    columns = {"mini": "tiles", "tiered": None, "cub": None}
    put(config, "scales/demo.yaml", "columns", columns)
    put(config, "scales/demo.yaml", "datasets", {"tiles": tiles | {"rotations_are_classes": True}})
    p = plan(config=config)
    p.check()
    assert p.runs.pretrain("tiles", "conv4", "epnet", 0) == p.runs.pretrain(
        "omniglot", "conv4", "epnet", 0
    )
    said = p.tables.stage("main").caption
    assert ": tiles (its rotations are classes: no rotated copies, no rotation loss)." in said
    assert "no rotated copies" in p.figures.of_table("ablation").note


# -- how settings are merged -----------------------------------------------------------------------


def test_a_recipe_is_its_protocol_then_the_scale_then_its_own_keys_each_with_its_backbone(config):
    """Each layer writes its number; the topmost must win, whichever are taken off above it."""
    layers = [
        ("recipes.yaml", "protocols/official"),
        ("recipes.yaml", "protocols/official/backbones/conv4"),
        ("scales/demo.yaml", "recipe"),
        ("scales/demo.yaml", "recipe/backbones/conv4"),
        ("recipes.yaml", "recipes/net"),
        ("recipes.yaml", "recipes/net/backbones/conv4"),
    ]
    for number, (file, layer) in enumerate(layers, start=1):
        put(config, file, f"{layer}/pretraining/weight_decay", number)
        recipe = plan(config=config).registry.recipes.resolve("net", "conv4")
        assert recipe.pretraining.weight_decay == number
    of_the_others = plan(config=config).registry.recipes.resolve("net", "resnet12")
    assert of_the_others.pretraining.weight_decay == 5


def test_merging_goes_key_by_key_and_a_null_deletes():
    base = {"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2], "f": 4}
    over = {"a": None, "b": {"d": 5, "g": 6}, "e": [7], "h": {"i": 8, "j": None}, "f": {"k": 9}}
    untouched = copy.deepcopy((base, over))
    assert merge(base, over) == {
        "b": {"c": 2, "d": 5, "g": 6},
        "e": [7],
        "f": {"k": 9},
        "h": {"i": 8},
    }
    assert (base, over) == untouched


def test_extends_lays_the_nearest_last():
    registry = {
        "far": {"a": 1, "b": 1, "c": {"x": 1, "y": 1}, "d": 1},
        "mid": {"extends": "far", "b": 2, "c": {"x": 2}, "d": None},
        "near": {"extends": "mid", "c": {"z": 3}},
    }
    expected = {"a": 1, "b": 2, "c": {"x": 2, "y": 1, "z": 3}}
    assert extend(registry, "near", "recipe", "here", dict) == expected


@pytest.mark.parametrize(
    ("registry", "shown"),
    [
        ({"a": {"extends": "a"}}, "a -> a"),
        ({"a": {"extends": "b"}, "b": {"extends": "c"}, "c": {"extends": "b"}}, "a -> b -> c -> b"),
    ],
)
def test_a_circle_of_extends_is_shown(registry, shown):
    with pytest.raises(UserError, match=f"^here: recipe 'a' extends itself: {shown}$"):
        extend(registry, "a", "recipe", "here", dict)


@pytest.mark.parametrize(
    ("stage", "model"), [("pretrain", PretrainConfig), ("finetune", FinetuneConfig)]
)
def test_a_raised_stage_version_is_told_to_its_stage_alone(stage, model, monkeypatch):
    """Snakemake re-runs a rule whose params change; a resumed training is of the same config."""
    asked = {"pretrain": ("glyph-mini", "conv4", "epnet", 0), "finetune": ("conv4", "epnet", 0, 1)}

    def told():
        plan = Plan(CONFIG, "demo")
        return {name: getattr(plan.runs, name)(*arguments) for name, arguments in asked.items()}

    before = told()
    monkeypatch.setattr(model.model_fields["stage_version"], "default", 99)
    model.model_rebuild(force=True)
    try:
        assert {name for name, text in told().items() if text != before[name]} == {stage}
        assert told()[stage].stage_version == 99
    finally:
        monkeypatch.undo()
        model.model_rebuild(force=True)
