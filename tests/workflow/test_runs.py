"""Real Snakemake runs on a tiny scale: what is built, and what a change builds anew."""

import json
import os
import subprocess
import sys

import pytest
from figure_files import lines_of

pytestmark = pytest.mark.workflow

AFTER_FINETUNING = {"finetune", "embed", "evaluate", "table", "publish"}


def ours(project):
    lines = lines_of(project.folder / "results/tiny/tables/main.csv")
    return [row for row in lines if row["accuracy"]]


@pytest.mark.smoke
def test_one_command_builds_every_cell_of_the_table(finished_once):
    project, run = finished_once
    assert run.jobs["pretrain"] == 2
    assert run.jobs["finetune"] == run.jobs["evaluate"] == 4
    assert run.jobs["embed"] == 4
    cells = {(row["row"], row["column"]) for row in ours(project)}
    assert cells == {(r, c) for r in ("--Net", "EPNet") for c in ("mini1", "mini5")}
    assert all(row["episodes"] == "12" for row in ours(project))
    text = (project.folder / "tables/main.tex").read_text()
    assert r"a test, 100 \% of it" in text
    assert "not comparable" in text


def test_the_method_changes_the_scores(finished_once):
    by_row = {(row["row"], row["column"]): row["accuracy"] for row in ours(finished_once[0])}
    assert by_row["--Net", "mini5"] != by_row["EPNet", "mini5"]


@pytest.mark.smoke
def test_every_artifact_says_how_it_came_to_be(finished_once):
    results = finished_once[0].folder / "results/tiny"
    artifacts = [*results.rglob("*.pt"), *results.rglob("*.npz")]
    artifacts += [*results.glob("scores/**/*.csv"), *results.glob("tables/*.csv")]
    checkpoints, episodes, features, scores, tables = 6, 2 + 2, 4, 4, 2
    assert len(artifacts) == checkpoints + episodes + features + scores + tables
    for artifact in artifacts:
        table = artifact.name.replace("-by-seed.csv", ".csv")  # one meta tells of both files
        meta = artifact.with_name(table).with_suffix(".meta.json")
        assert artifact.name in json.loads(meta.read_text(encoding="utf-8"))["made"]
    assert not [path for path in results.rglob("*") if ".tmp" in path.name]
    assert not list(results.rglob("*.state"))


@pytest.mark.smoke
def test_a_second_run_has_nothing_to_do(finished):
    assert finished.build().nothing_to_do


def test_everything_is_what_is_built_when_nothing_is_asked_for(finished):
    """All but what the main table has made already."""
    jobs = finished.snakemake("-n").jobs
    from_nothing = finished.snakemake("-n", "--forceall").jobs
    made = {"data": 1, "pretrain": 2, "finetune": 4, "embed": 4, "evaluate": 4, "publish": 1}
    for rule in (*made, "figure", "environment", "all"):
        assert jobs.get(rule, 0) == from_nothing[rule] - made.get(rule, 0), rule


@pytest.mark.smoke
def test_white_space_and_comments_retrain_nothing(finished):
    finished.replace("workflow/rules/pretrain.smk", '"epcore pretrain', '"epcore   pretrain')
    finished.replace("workflow/rules/finetune.smk", "rule finetune:", "# A remark.\nrule finetune:")
    finished.replace("config/recipes.yaml", "recipes:\n", "# A remark.\nrecipes:\n\n")
    finished.replace(
        "config/scales/tiny.yaml", "epochs: 2, batch_size: 32", "batch_size:  32, epochs: 2"
    )
    assert finished.plan().nothing_to_do


def test_a_pretraining_setting_redoes_pretraining_too_but_no_data(finished):
    finished.replace("config/recipes.yaml", "rotation_weight: 1", "rotation_weight: 2")
    assert set(finished.plan().jobs) == AFTER_FINETUNING | {"pretrain"}


@pytest.mark.smoke
def test_a_recipe_redoes_only_its_own_rows(finished):
    finished.replace(
        "config/recipes.yaml", "{embedding: false}", "{embedding: false, label_alpha: 0.3}"
    )
    jobs = finished.plan().jobs
    assert (jobs["pretrain"], jobs["finetune"]) == (1, 2)


def test_a_printed_number_redoes_only_the_table(finished):
    finished.replace("config/paper/main.csv", "43.56", "43.57")
    assert set(finished.plan().jobs) == {"table", "publish"}


def test_another_scale_shares_nothing_with_this_one(finished):
    jobs = finished.plan("--config", "scale=paper").jobs
    assert {"data", "episodes", "pretrain", "finetune", "embed", "evaluate"} <= set(jobs)


def test_only_a_scale_for_a_gpu_requires_one_and_the_user_may_waive_it(finished):
    target = "results/paper/models/mini-imagenet/conv4/epnet/s0/pretrain.pt"
    asked = ("-n", "-p", target, "--config", "scale=paper")
    assert "epcore pretrain --require-gpu" in finished.snakemake(*asked).text
    waived = finished.snakemake(*asked, "allow_cpu=true")
    for_cpus = finished.snakemake("-n", "-p", "--forceall")
    for run in (waived, for_cpus):
        assert run.code == 0, run.text
        assert "epcore pretrain " in run.text
        assert "--require-gpu" not in run.text


def test_another_seed_trains_anew_and_is_tested_on_the_same_episodes(finished):
    finished.replace("config/scales/demo.yaml", "\nseeds: [0] ", "\nseeds: [1] ")
    jobs = finished.plan().jobs
    assert (jobs["pretrain"], jobs["finetune"], jobs["evaluate"]) == (2, 4, 4)
    assert not {"data", "episodes"} & set(jobs)


def test_a_recipe_outside_the_tables_can_be_asked_for_by_its_path(finished):
    target = "results/tiny/scores/tiny-glyphs/conv4/epnet-paper-literal/s3/5way-1shot.csv"
    run = finished.snakemake("--cores", "2", target)
    assert run.code == 0, run.text
    assert len((finished.folder / target).read_text().splitlines()) == 1 + 12


def test_a_picture_of_every_data_set_can_be_drawn(finished):
    target = "results/tiny/figures/data/tiny-glyphs.png"
    assert finished.snakemake("--cores", "1", target).code == 0
    assert (finished.folder / target).stat().st_size > 10_000


def test_a_terminal_that_knows_ascii_alone_ends_no_run(finished):
    """At the end the table is printed, with question marks for what ASCII lacks."""
    (finished.folder / "tables/main.tex").unlink()
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "tables/main.tex"]
    ascii_alone = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = subprocess.run(
        command, cwd=finished.folder, env=os.environ | ascii_alone, capture_output=True, check=True
    )
    assert b"With all rows:" in run.stdout + run.stderr
