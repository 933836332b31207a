"""The plan of ImageNet-FS: what is shared, what a table is made of, and mistakes in its config."""

import itertools
import re
from pathlib import Path

import pytest
from plans import plan_of, put

from epcore.errors import UserError
from epcore.imagenet_fs import config as imagenet_fs
from epcore.plan import Plan
from epcore.settings import config_text

CONFIG = Path(__file__).parents[2] / "config"
STAGES = {
    "exemplars": ("ExemplarsConfig", ()),
    "classifier": ("ClassifierConfig", ("resnet10", 0)),
    "features": ("ImageFeaturesConfig", ("resnet10",)),
    "generator": ("GeneratorConfig", ("wdae-gnn", 0)),
    "evaluate": ("TrialsConfig", ("wdae-gnn",)),
}


def plan(scale="paper"):
    found = plan_of(scale).imagenet_fs
    assert found is not None
    return found


@pytest.mark.parametrize("scale", ["demo", "paper"])
@pytest.mark.parametrize("name", STAGES)
def test_what_a_stage_is_told_is_what_it_reads(scale, name):
    model, arguments = STAGES[name]
    stage = getattr(plan(scale), name)(*arguments)
    assert type(stage) is getattr(imagenet_fs, model)
    assert type(stage).model_validate_json(config_text(stage)) == stage


def test_the_paper_scale_has_the_numbers_of_the_cited_code():
    """PAPER_VS_CODE F.3, F.5, F.6 and, of LwoF, the corrections."""
    told = plan().classifier("resnet10", 0).model_dump(mode="json")
    training, backbone = told["training"], told["backbone"]
    assert backbone == {"architecture": "resnet10", "width": "1", "depth": "1"}
    assert told["view"] == {"resize": "1", "crop": "7/8"}
    assert (training["batch_size"], training["steps"], training["epochs"]) == (400, 4000, 100)
    assert (training["learning_rate"], training["drops"]) == (0.1, [30, 60, 90])
    assert training["augmentation"] == ["flip", "crop", "ordered-jitter"]
    generator = plan().generator("wdae-gnn", 0).model_dump(mode="json")
    assert generator["shots"] == [1]
    assert generator["propagation"] is None
    expected = {"novel": 200, "base_queries": 200, "novel_queries": 1, "batch_size": 4,
                "steps": 1000, "epochs": 15, "learning_rate": 0.01, "drops": [10]}  # fmt: skip
    assert expected.items() <= generator["training"].items()
    assert generator["training"]["keep"] == "best"
    for kind, more in (("lwof-average", {}), ("lwof-attention", {"attention_scale": 30})):
        lwof = plan().generator(kind, 0).model_dump(mode="json")
        assert lwof["generator"] == {"kind": kind} | more
        # lowshot_train_stage2.py gives `solve` no validation data, so only the last epoch is left.
        expected = {"novel": 250, "base_queries": 750, "novel_queries": 6, "batch_size": 1,
                    "steps": 4000, "epochs": 6, "learning_rate": 0.01, "drops": [4],
                    "keep": "last"}  # fmt: skip
        assert expected.items() <= lwof["training"].items()
    for method, examples in (("pmn", 25), ("pmn-without-hallucination", 0)):
        pmn = plan().generator(method, 0).model_dump(mode="json")
        assert pmn["generator"] == {"kind": "pmn", "examples": examples, "noise": 0.1, "reads": 5}
        # As many steps as in matching_network.py; a plain momentum of 0.9 makes steps ten times as
        # large as its dampened one, so that the rate is a tenth.
        expected = {"steps": 4000, "epochs": 15, "drops": [5, 10], "learning_rate": 0.01,
                    "momentum": 0.9, "weight_decay": 1e-3, "keep": "last"}  # fmt: skip
        assert expected.items() <= pmn["training"].items()
    turned = plan().classifier("resnet10-rotations", 0).model_dump(mode="json")
    expected = {"batch_size": 128, "steps": 4000, "epochs": 130, "drops": [60, 90, 120],
                "rotation_weight": 1.0}  # fmt: skip
    assert expected.items() <= turned["training"].items()
    assert turned["backbone"]["architecture"] == "resnet10-relu"
    assert plan().evaluate("cc-rot").novel_factors == (0.8, 0.75, 0.7, 0.65, 0.6)
    sgm = plan().classifier("resnet10-sgm", 0).model_dump(mode="json")
    expected = {"batch_size": 256, "epochs": 90, "drops": [30, 60], "learning_rate": 0.1,
                "weight_decay": 1e-4, "linear": True, "gradient_weight": 5.0}  # fmt: skip
    assert expected.items() <= sgm["training"].items()
    assert sgm["backbone"]["architecture"] == "resnet10-relu"
    layer = plan().evaluate("batch-sgm").generator.model_dump()
    assert layer == {"kind": "linear-layer", "iterations": 10_000, "batch_size": 1000,
                     "learning_rate": 1, "momentum": 0.9, "weight_decay": 1e-3}  # fmt: skip
    trials = plan().evaluate("wdae-gnn").model_dump(mode="json")
    assert trials["step_sizes"] == [1.0, 1.0, 0.6, 0.4, 0.2]
    assert (trials["shots"], trials["prior"]) == ([1, 2, 5, 10, 20], 0.7)
    assert plan().exemplars().trials == {"novel": 100, "val": 20}


def test_propagation_is_told_to_training_only_if_it_is_there_and_by_what_matters_there():
    found = plan()
    trained = found.generator("wdae-gnn-ep", 0).propagation
    assert trained.alpha == 0.5
    shared = {name: found.generator_method(name) for name in found.trained_methods}
    assert shared["wdae-gnn-ep-at-test"] == "wdae-gnn"
    assert shared["wdae-gnn-ep-before-step"] == "wdae-gnn-ep"
    assert all(found.generator(name) == found.generator(owner) for name, owner in shared.items())
    own = [name for name, owner in shared.items() if name == owner]
    assert len({found.generator(name) for name in own}) == len(own)
    assert len({found.evaluate(name) for name in found.methods}) == len(found.methods)


def test_lwof_has_a_generator_for_each_shot_and_wdae_one_for_all():
    found = plan()
    assert found.generator("lwof-attention", 0).shots == (1, 2, 5, 10, 20)
    assert len(found.validation_exemplars("lwof-attention")) == 5
    assert found.validation_exemplars("wdae-gnn")[0].endswith("exemplars/val-1shot.npz")
    assert len(found.validation_exemplars("wdae-gnn")) == 1


OWN_NETWORK = {"cc-rot": "resnet10-rotations", "batch-sgm": "resnet10-sgm"}


@pytest.mark.parametrize(("method", "network"), OWN_NETWORK.items())
def test_methods_without_a_generator_file_are_tested_on_their_own_network(method, network):
    found = plan()
    assert set(found.methods) - set(found.trained_methods) == set(OWN_NETWORK)
    cells = plan_of("paper").tables.cells("imagenetfs")
    runs = {cell.run for cell in cells if cell.row.name == method}
    assert {run.backbone for run in runs} == {network}
    assert {found.trained(run) for run in runs} == {
        f"results/paper/imagenet-fs/{run.dataset}/{network}/s0/classifier.pt" for run in runs
    }
    assert not [file for run in runs for file in found.generator_files(run)]


def test_the_seed_is_told_to_the_test_of_methods_that_draw_in_it_and_to_no_other():
    found = plan()
    changed = [name for name in found.methods if found.evaluate(name, 1) != found.evaluate(name)]
    assert changed == ["batch-sgm"]
    assert "seed" not in config_text(found.evaluate("wdae-gnn", 1))


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_the_table_has_ten_columns_of_every_method_and_run_and_the_papers_rows(scale):
    tables = plan_of(scale).tables
    told = tables.stage("imagenetfs")
    columns = [f"{measure}{k}" for measure in ("nov", "all") for k in (1, 2, 5, 10, 20)]
    assert [column.name for column in told.table.columns] == columns
    rows = {row.name: row for row in tables.table("imagenetfs").imagenet_fs.rows}
    runs = {f"{run.dataset}, {run.network}": run.dataset for run in plan(scale).scale.runs}
    cells = {(cell.block, cell.row, cell.column): cell for cell in told.cells}
    first = list({dataset: run for run, dataset in reversed(runs.items())}.values())
    own_network = [row for row in rows if rows[row].backbone]
    assert set(own_network) == set(OWN_NETWORK)
    others = [row for row in rows if row not in own_network]
    places = [*itertools.product(runs, others, columns)]
    assert sorted(cells) == sorted([*places, *itertools.product(first, own_network, columns)])
    for (run, row, column), cell in cells.items():
        assert f"/{rows[row].recipe}/" in cell.scores.file
        other = rows[row].baseline
        assert cell.baseline == (cells[run, other, column].scores if other else None)
    assert rows["wdae-gnn-ep"].baseline == "wdae-gnn"
    assert len({cell.scores for cell in told.cells}) == len(told.cells) == len(cells)
    lines = (CONFIG / "paper" / "imfs.csv").read_text(encoding="utf-8").splitlines()[1:]
    printed = {line.split(",")[1] for line in lines}
    assert {row.name for block, row, _ in told.table.places if block.name == "-"} == printed
    assert {line.split(",")[2] for line in lines} == set(columns)


def test_both_readings_and_both_networks_are_runs_of_the_paper_scale():
    tables = plan_of("paper").tables
    blocks = {cell.block for cell in tables.measured("imagenetfs")}
    readings = ("by-name", "by-sorted-index")
    networks = ("resnet10", "resnet18")
    assert blocks == {f"imagenet-fs-{r}, {n}" for r in readings for n in networks}
    assert {cell.block for cell in tables.measured("imagenetfs-variants")} == {
        "imagenet-fs-by-sorted-index, resnet10"
    }


def test_each_variant_differs_from_the_default_in_one_choice():
    methods = plan().methods
    rows = plan_of("paper").tables.table("imagenetfs-variants").imagenet_fs.rows
    default = methods["wdae-gnn-ep"].propagation.model_dump()
    choices = []
    for name in (row.recipe for row in rows if row.recipe.startswith("wdae-gnn-ep-")):
        changed = methods[name].propagation.model_dump()
        (choice,) = (key for key in default if changed[key] != default[key])
        choices.append(choice)
        assert methods[name].generator == methods["wdae-gnn"].generator
    assert set(choices) == set(default)


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_the_page_on_the_environment_names_every_training_and_test_of_the_target_all_once(scale):
    plan = plan_of(scale)
    told = plan.environment().metas
    assert len(told) == len(set(told))
    cells = [cell for table in plan.main_tables for cell in plan.tables.measured(table)]
    assert {cell.checkpoint_meta for cell in cells} <= set(told)
    runs = plan.imagenet_fs.scale.runs
    networks = {(run.dataset, run.network) for run in runs}
    networks |= {(run.dataset, network) for run in runs for network in OWN_NETWORK.values()}
    classifiers = [meta for meta in told if meta.endswith("/classifier.meta.json")]
    assert {tuple(meta.split("/")[3:5]) for meta in classifiers} == networks
    kinds = list(dict.fromkeys("/scores/" in meta for meta in told))
    assert kinds == [False, True]  # trainings first


def test_scales_without_it_have_none_of_it(config):
    for scale in ("small", "grocery"):
        found = Plan(config, scale)
        assert found.imagenet_fs is None
        assert not [name for name in found.tables.shown if name.startswith("imagenetfs")]


def test_a_table_shows_the_columns_whose_k_the_scale_has(config):
    put(config, DEMO, "imagenet_fs/settings/shots", [1, 5])
    put(config, DEMO, "imagenet_fs/settings/methods/wdae-gnn/step_sizes", [1, 1])
    put(config, DEMO, "imagenet_fs/settings/methods/cc-rot", {"novel_factors": [0.8, 0.7]})
    found = Plan(config, "demo")
    found.check()
    stage = found.tables.stage("imagenetfs")
    assert [column.name for column in stage.table.columns] == ["nov1", "nov5", "all1", "all5"]
    assert len(stage.groups) == 4
    assert {cell.column for cell in stage.cells} == {"nov1", "nov5", "all1", "all5"}


def test_all_leaves_out_the_table_of_one_run_which_can_be_asked_for_by_name():
    found = plan_of("paper")
    assert {"imagenetfs", "imagenetfs-prior"} <= set(found.main_tables)
    assert "imagenetfs-variants" not in found.main_tables
    assert "imagenetfs-variants" in found.tables.covered


# -- mistakes -------------------------------------------------------------------------------------


FS, DEMO, TABLE = "imagenet-fs.yaml", "scales/demo.yaml", "tables/imagenetfs.yaml"
EP = {"alpha": 0.5, "training": False, "nodes": "all", "reconstruction": "generated",
      "step": "after", "normalize_weights": False}  # fmt: skip
MISTAKES = [
    (DEMO, "imagenet_fs", {}, "the key 'imagenet_fs.runs' is missing"),
    (DEMO, "imagenet_fs/runs/0/dataset", "glyph-mini", "'glyph-mini-queries'"),
    (DEMO, "imagenet_fs/runs/0/network", "resnet12", "unknown network 'resnet12'"),
    (DEMO, "imagenet_fs/settings/shots", [1, 2], "has 5 numbers, shots 2"),
    (DEMO, "imagenet_fs/settings/shots", [2, 3, 4, 5, 6], "exemplars 1 is none of"),
    (FS, "methods/cc-rot/novel_factors", [0.8], "novel_factors has 1 numbers, shots 5"),
    (FS, "methods/new", {"generator": {"kind": "lwof-average"}}, "give training, unless"),
    (
        DEMO,
        "imagenet_fs/settings/networks/resnet10-rotations/classifier/drops",
        [10],
        "networks.resnet10-rotations.classifier: drops must rise and be smaller than epochs",
    ),
    (
        FS,
        "networks/resnet10-rotations/architecture",
        "conv4",
        "networks.resnet10-rotations.classifier: conv4 has no maps to learn rotations of",
    ),
    (FS, "methods/batch-sgm/propagation", EP, "a linear layer has no propagation"),
    (
        FS,
        "networks/resnet10-sgm/classifier/linear",
        False,
        "networks.resnet10-sgm.classifier: gradient_weight is of a linear classifier",
    ),
    (FS, "methods/wdae-gnn-ep/extends", "wdae", "unknown method 'wdae'"),
    (TABLE, "imagenet_fs/rows/wdae-gnn-ep/baseline", "wdae", "unknown row 'wdae'"),
]


@pytest.mark.parametrize(("file", "path", "value", "message"), MISTAKES)
def test_a_mistake_is_one_line_that_names_the_file_and_what_is_meant(
    config, file, path, value, message
):
    put(config, file, path, value)
    with pytest.raises(UserError) as caught:
        Plan(config, "demo").check()
    text = str(caught.value)
    assert message in text
    assert re.search(r"imagenet-fs\.yaml|demo\.yaml|imagenetfs\.yaml", text)
    assert len(text.splitlines()) == 1
