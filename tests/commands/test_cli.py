"""The command line: a mistake is one line and leaves no trace; a stage loads what it needs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from epcore.commands.cli import COMMANDS, main
from epcore.commands.stages import COMPUTE, run_report
from epcore.errors import UserError
from epcore.plan import Plan
from epcore.settings import config_text

CONFIG = Path(__file__).parents[2] / "config"
PLAN = Plan(CONFIG, "demo")
RUN = ("conv4", "epnet")
TEXTS = {
    stage: config_text(config)
    for stage, config in {
        "data": PLAN.data.build("glyph-mini"),
        "episodes": PLAN.data.episodes("5way-1shot"),
        "pretrain": PLAN.runs.pretrain("glyph-mini", *RUN, 0),
        "finetune": PLAN.runs.finetune(*RUN, 0, 1),
        "select": PLAN.runs.select("epnet-selected", "pretrain"),
        "embed": PLAN.runs.embed(*RUN),
        "evaluate": PLAN.runs.evaluate(*RUN),
        "table": PLAN.tables.stage("main"),
        "speed": PLAN.figures.of_table("speed"),
        "alpha": PLAN.figures.alpha(),
        "curves": PLAN.curves.stages["curves-glyph-mini-resnet12"],
    }.items()
}


def epcore(*arguments):
    """`python -m epcore` in a process of its own."""
    command = [sys.executable, "-m", "epcore", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A working directory with the features and episodes of three classes far apart."""
    monkeypatch.chdir(tmp_path)
    rows = np.arange(12)
    values = np.random.default_rng(0).normal(0, 0.1, (12, 4)) + 10 * np.eye(4)[rows // 4]
    np.savez("features.npz", rows=rows, labels=rows // 4, values=values.astype(np.float32))
    of_class = rows.reshape(3, 4)[None].repeat(2, axis=0)
    parts = {"support": [0], "query": [1, 2, 3], "unlabeled": []}
    np.savez("episodes.npz", **{name: of_class[..., rows] for name, rows in parts.items()})
    return tmp_path


EVALUATE = ["--features", "features.npz", "--episodes", "episodes.npz", "--out", "scores.csv"]


def complaint(capsys, *arguments):
    """What a mistake prints: one line, no traceback, exit code 2, and no file more or less."""
    before = sorted(Path().rglob("*"))
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("epcore: ")
    assert len(printed.err.splitlines()) == 1
    assert sorted(Path().rglob("*")) == before
    return printed.err


def test_help_lists_every_stage():
    done = epcore("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("    ")]
    assert {*COMMANDS} <= set(listed)
    for_the_workflow = done.stdout.partition("For the workflow")[2]
    assert set(COMPUTE) <= set(re.findall(r"[\w-]+", for_the_workflow.replace("-\n", "-")))


def test_every_stage_explains_its_options(capsys):
    own = {"fetch": "--receipt", "forecast": "--medians", "status": "--results"}
    own |= {
        "doctor": "--root",
        "classify": "--dirichlet",
        "show": "--open",
        "schema": "--settings",
    }
    for stage in (*COMPUTE, *COMMANDS):
        with pytest.raises(SystemExit) as ended:
            main([stage, "--help"])
        assert ended.value.code == 0, stage
        assert own.get(stage, "--out") in capsys.readouterr().out, stage


@pytest.mark.slow
def test_the_scale_is_that_of_the_config_file_unless_another_is_named(config, capsys):
    file = config / "config.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("scale: demo", "scale: small"))
    named = (("--scale", "demo"), ("--config", "scale=demo"))
    for options, scale in (((), "small"), *((options, "demo") for options in named)):
        assert main(["doctor", "no-target", "--settings", str(config), *options]) == 2
        assert f"no-target at scale {scale}:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stage", "option"),
    [("embed", "--gpus"), ("classify", "--shot"), ("embed-folder", "--size")],
)
@pytest.mark.parametrize("count", ["-1", "1.5", "all"])
def test_a_number_that_cannot_be_is_refused(capsys, stage, option, count):
    with pytest.raises(SystemExit) as ended:
        main([stage, option, count])
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"argument {option}: expected a whole number" in said


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("seeds=[1", "seeds=[1: the value is not valid YAML"),
        ("tables/main.tex", "expected KEY=VALUE, got tables/main.tex; name targets before it"),
    ],
)
def test_a_wrong_pair_of_config_is_told(capsys, pair, said):
    with pytest.raises(SystemExit) as ended:
        main(["forecast", "--config", pair])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_misspelled_key_of_config_is_told_with_the_one_that_was_meant(capsys):
    assert main(["forecast", "--settings", str(CONFIG), "--config", "seedz=3"]) == 2
    assert "unknown key 'seedz'; did you mean 'seeds'?" in capsys.readouterr().err


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_mistake(tmp_path):
    shell = f"{sys.executable} -m epcore doctor --settings {CONFIG} 2> said | exec true"
    subprocess.run(["bash", "-c", shell], cwd=tmp_path, check=True)
    assert (tmp_path / "said").read_text() == ""


def test_schemas_without_a_config_folder_are_told_where_to_go(files, capsys):
    assert complaint(capsys, "schema") == (
        "epcore: there is no folder config; run this where the Snakefile is, or say --settings "
        "FOLDER\n"
    )


def test_a_mistake_on_the_real_command_line_is_one_line_and_exit_code_2(files):
    done = epcore("evaluate", "--config", '{"stage_version":', *EVALUATE)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("epcore: --config: this is not valid JSON (")
    assert len(done.stderr.splitlines()) == 1
    assert not (files / "scores.csv").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda c: c["propagation"].update(bandwith="std"),
            "unknown key 'propagation.bandwith'; did you mean 'bandwidth'?",
        ),
        (lambda c: c.update(propagations=1), "'propagations'; did you mean 'propagation'?"),
        (lambda c: c["propagation"].pop("part"), "the key 'propagation.part' is missing"),
        (lambda c: c["propagation"].update(label_alpha="high"), "propagation.label_alpha: "),
        (lambda c: c.update(propagation=[1]), "propagation: expected a mapping of keys to values"),
    ],
)
def test_a_wrong_config_is_told_by_key(files, capsys, change, said):
    content = json.loads(TEXTS["evaluate"])
    change(content)
    message = complaint(capsys, "evaluate", "--config", json.dumps(content), *EVALUATE)
    assert message.startswith("epcore: --config: ")
    assert said in message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"", "this is not valid JSON"),
        (b"[1]", "expected a mapping of keys to values, got [1]"),
        (b'{"a": "caf\xe9"}', "this is not UTF-8 text"),
    ],
)
def test_a_wrong_config_file_is_told(files, capsys, content, said):
    if content is not None:
        (files / "config.json").write_bytes(content)
    assert said in complaint(capsys, "evaluate", "--config", "config.json", *EVALUATE)


INPUTS = {
    "contact-sheet": ["--data", "none", "--out", "x.png"],
    "episodes": ["--data", "none", "--out", "x.npz"],
    "pretrain": ["--data", "none", "--episodes", "none.npz", "--out", "x.pt"],
    "finetune": [
        *("--data", "none", "--episodes", "none.npz"),
        *("--checkpoint", "none.pt", "--out", "x.pt"),
    ],
    "select": ["--checkpoints", "none.pt", "--out", "x.pt"],
    "embed": ["--data", "none", "--weights", "none.pt", "--out", "x.npz"],
    "evaluate": ["--features", "none.npz", "--episodes", "episodes.npz", "--out", "x.csv"],
}


@pytest.mark.parametrize("stage", INPUTS)
def test_a_missing_input_is_named(files, capsys, stage):
    config = ["--config", TEXTS[stage]] if stage in TEXTS else []
    assert "none" in complaint(capsys, stage, *config, *INPUTS[stage])


@pytest.mark.parametrize(
    ("stage", "named"),
    [
        ("table", "scores/glyph-mini/conv4/net/s0/5way-1shot.csv"),
        ("alpha", "features/glyph-mini/conv4/net/s0/pretrain.npz"),
        ("curves", "models/glyph-mini/resnet12/epnet/s0/pretrain.csv"),
    ],
)
def test_a_missing_input_that_the_config_names_is_named(files, stage, named):
    inputs = {"alpha": {"episodes": "episodes.npz"}, "table": {"printed": []}}
    with pytest.raises(UserError, match=f"results/demo/{named} does not exist"):
        run_report(stage, TEXTS[stage], inputs.get(stage, {}), Path("x.csv"))


def test_a_missing_second_input_is_named(files, capsys):
    (files / "episodes.npz").unlink()
    assert "episodes.npz" in complaint(capsys, "evaluate", "--config", TEXTS["evaluate"], *EVALUATE)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_scale_for_a_gpu_refuses_to_train_without_one(toy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = config_text(Plan(CONFIG, "paper").runs.pretrain("mini-imagenet", *RUN, 0))
    inputs = ["--data", toy.data, "--episodes", toy.val, "--out", "pretrain.pt"]
    message = complaint(capsys, "pretrain", "--require-gpu", "--config", text, *inputs)
    assert "scale demo" in message
    assert "no --require-gpu, for Snakemake --config allow_cpu=true" in message


@pytest.mark.slow
def test_evaluate_runs_by_itself_and_its_meta_holds_the_config_to_run_it_again(files):
    done = epcore("evaluate", "--config", TEXTS["evaluate"], *EVALUATE)
    assert (done.returncode, done.stderr) == (0, "")
    scores = (files / "scores.csv").read_bytes()
    assert scores == b"episode,accuracy\n0,1.000000\n1,1.000000\n"
    facts = json.loads((files / "scores.meta.json").read_text(encoding="utf-8"))
    assert facts["inputs"].keys() == {"features.npz", "episodes.npz"}
    (files / "again.json").write_text(json.dumps(facts["config"]), encoding="utf-8")
    (files / "scores.csv").unlink()
    assert main(["evaluate", "--config", "again.json", *EVALUATE]) == 0
    assert (files / "scores.csv").read_bytes() == scores


WATCHED = """
import json, sys
from epcore.commands.cli import main
for command in json.load(sys.stdin):
    assert main(command) == 0
    print(command[0], *sorted({"torch", "scipy", "snakemake"} & sys.modules.keys()))
"""


def test_stages_load_only_what_they_use(files):
    """In this order, because what is loaded stays loaded."""
    random = np.random.default_rng(0)
    lines = ["filename,label,split"]
    for number, split in enumerate(["train", "train", "val", "val", "test", "test"]):
        folder = files / "photographs" / "images" / f"class{number}"
        folder.mkdir(parents=True)
        for image in range(3):
            pixels = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{image}.png")
            lines.append(f"{image}.png,class{number},{split}")
    (files / "photographs" / "split.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    dataset = {"kind": "folder", "title": "t", "path": "photographs", "image_size": 8}
    data = json.dumps({"stage_version": 1, "dataset": dataset})
    episodes = json.loads(TEXTS["episodes"]) | {"way": 2, "queries": 2, "episodes": 3}
    commands = [
        ["data", "--config", data, "--out", "store"],
        ["episodes", "--config", json.dumps(episodes), "--data", "store", "--out", "novel.npz"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED],
        input=json.dumps(commands), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "data",
        "episodes",
    ]
