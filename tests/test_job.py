"""A stage by the names of its job: what a person types is what the workflow runs."""

import json
import re
import shutil
from pathlib import Path

import pytest

from epcore.cli import main
from epcore.errors import UserError
from epcore.files import fingerprint
from epcore.job import command_of, config_names, resolved, stage_config
from epcore.options import parser
from epcore.plan import Plan
from epcore.plan.names import KNOWN
from epcore.plan.stages import Stage as Told
from epcore.stages import NUMBERS, STAGES

ROOT = Path(__file__).parents[1]
RUN = {"dataset": "glyph-mini", "backbone": "conv4", "recipe": "epnet", "seed": "0"}
FS_RUN = {"dataset": "glyph-large", "network": "resnet10", "seed": "0"}
NAMES = {
    "data": {"dataset": "glyph-mini"},
    "contact-sheet": {"dataset": "glyph-mini"},
    "episodes": {"dataset": "glyph-mini", "protocol": "5way-1shot"},
    "pretrain": RUN,
    "finetune": RUN | {"shot": "1"},
    "select": RUN | {"recipe": "epnet-selected", "checkpoint": "finetune-1shot"},
    "embed": RUN | {"checkpoint": "finetune-5shot"},
    "base-classes": RUN | {"checkpoint": "finetune-1shot"},
    "evaluate": RUN | {"protocol": ["5way-1shot"]},
    "meta-train": RUN | {"recipe": "tpn", "shot": "1"},
    "meta-test": RUN | {"recipe": "tpn", "protocol": "5way-1shot"},
    "table": {"table": "main"},
    "plot": {"plot": "by-shot"},
    "curves": {"curves": "curves-glyph-mini-conv4"},
    "imagenet-fs-exemplars": {"dataset": "glyph-large"},
    "imagenet-fs-classifier": FS_RUN,
    "imagenet-fs-features": FS_RUN,
    "imagenet-fs-generator": FS_RUN | {"method": "wdae-gnn"},
    "imagenet-fs-evaluate": FS_RUN | {"method": "wdae-gnn"},
}
# Their jobs read results that names alone do not say.
LOOKED_UP = {
    *("finetune", "select", "evaluate", "meta-train", "meta-test"),
    *("alpha", "interpolation", "plot", "reproduction"),
    *("imagenet-fs-generator", "imagenet-fs-evaluate"),
}
TOLD_BY_NAMES = [name for name in STAGES if name != "gap"]  # of which the demo has no figure


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the project's config, in which the test runs."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(name, *words):
    given = vars(parser().parse_args([name, *words]))
    given.pop("command")
    return {key: value for key, value in given.items() if key not in ("gpus", "allow_cpu")}


@pytest.mark.parametrize("name", STAGES)
def test_the_plan_takes_nothing_but_names_of_the_job(name):
    stage, plan = STAGES[name], Plan(ROOT / "config", "demo")
    assert stage.config is None or set(config_names(plan, stage)) <= set(stage.names)
    assert (stage.config is None) == (stage.plan == "")


@pytest.mark.parametrize("name", TOLD_BY_NAMES)
def test_the_workflows_words_resolve_to_what_the_plan_says_and_to_all_files(project, name):
    """They end with its digest, where the stage has a config."""
    plan = Plan(Path("config"), "demo")
    words = command_of(plan, name, NAMES.get(name, {}))
    found = resolved(name, arguments(name, *words))
    if STAGES[name].config is None:
        assert "--digest" not in words
    else:
        said = stage_config(plan, name, NAMES.get(name, {}))
        assert isinstance(found["stage"], Told)
        assert json.loads(found["stage"].model_dump_json()) == json.loads(said)
        assert words[-2] == "--digest"
        assert (words[-1] == fingerprint(said)) == (name not in LOOKED_UP)
    for option in STAGES[name].files:
        if option.required:
            assert found[option.name], option.name


def test_a_command_line_stays_short_whatever_the_scale(project):
    """Linux ends an argument at 128 KiB; the page on the environment is told 21 kB of files."""
    plan = Plan(Path("config"), "paper", seeds=[*range(9)])
    assert len(stage_config(plan, "environment", {})) > 2**17
    assert len(" ".join(command_of(plan, "environment", {}))) < 200


def test_an_edit_during_a_run_is_told_and_not_used(project, capsys):
    words = command_of(Plan(Path("config"), "demo"), "pretrain", RUN)
    recipes = project / "config" / "recipes.yaml"
    text = recipes.read_text(encoding="utf-8")
    recipes.write_text(re.sub("rotation_weight: 1", "rotation_weight: 2", text, count=1))
    Plan(Path("config"), "demo").check()
    assert main(["pretrain", *words]) == 2
    said = capsys.readouterr().err
    assert "config/ was edited after this run had begun" in said
    assert len(said.splitlines()) == 1
    assert not (project / "results").exists()


def test_another_checkpoint_for_the_same_job_is_told_and_not_used(project, capsys):
    """A recipe that trains alike and stands before it names their pretraining from now on."""
    words = command_of(Plan(Path("config"), "demo"), "finetune", NAMES["finetune"])
    recipes = project / "config" / "recipes.yaml"
    text = recipes.read_text(encoding="utf-8")
    earlier = "recipes:\n  early:\n    description: as epnet\n    extends: epnet\n"
    recipes.write_text(text.replace("recipes:\n", earlier, 1), encoding="utf-8")
    plan = Plan(Path("config"), "demo")
    assert plan.runs.pretraining_recipe("conv4", "epnet") == "early"
    assert main(["finetune", *words]) == 2
    assert "config/ was edited after this run had begun" in capsys.readouterr().err


def test_an_edit_of_something_else_during_a_run_is_no_matter(project):
    words = command_of(Plan(Path("config"), "demo"), "pretrain", RUN)
    table = project / "config" / "tables" / "main.yaml"
    table.write_text(table.read_text(encoding="utf-8").replace("EPNet", "Epnet"))
    assert resolved("pretrain", arguments("pretrain", *words))["stage"].seed == 0


def test_by_hand_the_scale_is_that_of_the_config_and_the_seed_its_first(project):
    words = ["--dataset", "glyph-mini", "--backbone", "conv4", "--recipe", "net", "--shot", "5"]
    found = resolved("finetune", arguments("finetune", *words))
    of_recipe = Path("results/demo/models/glyph-mini/conv4/net/s0")
    assert found["checkpoint"] == of_recipe / "pretrain.pt"
    assert found["out"] == of_recipe / "finetune-5shot.pt"
    assert found["episodes"] == Path("results/demo/episodes/glyph-mini/val-5way-5shot.npz")
    assert (found["stage"].seed, found["stage"].shot) == (0, 5)


def test_a_file_that_is_given_takes_the_place_of_the_jobs(project):
    words = [word for key, value in RUN.items() for word in (f"--{key}", value)]
    words += ["--checkpoint", "pretrain", "--weights", "mine.pt", "--out", "mine.npz"]
    found = resolved("embed", arguments("embed", *words))
    assert (found["weights"], found["out"]) == (Path("mine.pt"), Path("mine.npz"))
    assert found["data"] == Path("results/demo/data/glyph-mini")


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("pretrain", [], "pretrain: --dataset, --backbone, --recipe missing"),
        ("finetune", ["--dataset", "glyph-mini"], "--backbone, --recipe, --shot missing"),
        ("contact-sheet", [], "contact-sheet: --dataset missing"),
        ("table", ["--config", "{}"], "--config: "),
    ],
)
def test_what_is_missing_is_named(project, capsys, name, words, said):
    assert main([name, *words]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"recipe": "epnett"}, "did you mean 'epnet'"),
        ({"backbone": "conv5"}, "did you mean 'conv4'"),
        ({"dataset": "glyph-mimi"}, "did you mean 'glyph-mini'"),
    ],
)
def test_a_misspelled_name_is_told_with_the_nearest(project, changed, said):
    names = RUN | changed
    words = [word for key, value in names.items() for word in (f"--{key}", value)]
    with pytest.raises(UserError, match=said):
        resolved("pretrain", arguments("pretrain", *words))


def test_a_stage_of_imagenet_fs_at_a_scale_without_it_is_one_line(project, capsys):
    files = ["--data", "d", "--queries", "q", "--out", "o"]
    assert main(["imagenet-fs-exemplars", "--scale", "small", *files]) == 2
    assert capsys.readouterr().err.splitlines() == ["epcore: scale small has no ImageNet-FS"]


# Each stage with each of its names that is spelled wrong below, the others right.
MISSPELLED = [
    (name, wrong) for name in STAGES for wrong in STAGES[name].names if wrong in {*KNOWN, "recipe"}
]


@pytest.mark.parametrize(("name", "wrong"), MISSPELLED)
def test_a_name_that_nothing_has_is_one_line_for_every_stage(project, capsys, name, wrong):
    words, unknown = [], "77" if wrong in NUMBERS else "nope"
    for key, value in (NAMES[name] | {wrong: unknown}).items():
        words += [f"--{key}", *([value] if isinstance(value, str) else value)]
    assert main([name, "--scale", "demo", *words]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"--{wrong} at scale demo: unknown" in said
    assert f"'{unknown}'; " in said
    assert not (project / "results").exists()


@pytest.mark.parametrize(
    "figure", ["ablation", "alpha", "interpolation", "gap", "speed", "per-episode"]
)
def test_a_figure_that_a_scale_has_no_runs_of_is_one_line(project, capsys, figure):
    columns = (
        "extends: demo\ncolumns: {mini: null, cub: null}\ntables: [placement]\nimagenet_fs: null\n"
    )
    (project / "config" / "scales" / "lesser.yaml").write_text(columns, encoding="utf-8")
    assert main([figure, "--scale", "lesser"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"epcore: scale lesser: unknown figure '{figure}'")
