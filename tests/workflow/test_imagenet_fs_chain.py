"""ImageNet-FS for real on a tiny scale: the table, and what is shared."""

import re
import shutil
from pathlib import Path

import pytest
from figure_files import lines_of

from epcore.plan import Plan

pytestmark = pytest.mark.workflow

TARGETS = ("tables/imagenetfs.tex", "tables/imagenetfs-prior.tex")
SCALE = "tiny-imagenet-fs"


@pytest.fixture(scope="module")
def built(project_in, tmp_path_factory):
    project = project_in(tmp_path_factory.mktemp("imagenet-fs"))
    shutil.copy(Path(__file__).with_name(f"{SCALE}.yaml"), project.folder / "config/scales")
    project.replace("config/config.yaml", "scale: tiny", f"scale: {SCALE}")
    project.replace("config/footprint.yaml", "tracking: true", "tracking: false")  # for time
    run = project.snakemake("--cores", "2", *TARGETS)
    assert run.code == 0, run.text
    return project, run


def test_the_table_has_every_cell_of_ours_and_the_papers_rows(built):
    project, run = built
    plan = Plan(project.folder / "config", SCALE)
    tested = {row.recipe for row in plan.tables.table("imagenetfs").imagenet_fs.rows}
    trained = tested & set(plan.imagenet_fs.trained_methods)
    assert run.jobs["imagenet_fs_classifier"] == 3
    assert run.jobs["imagenet_fs_generator"] == len(trained)
    assert run.jobs["imagenet_fs_evaluate"] == len(tested) - 3
    assert run.jobs["imagenet_fs_evaluate_long"] == 3
    lines = lines_of(project.folder / f"results/{SCALE}/tables/imagenetfs.csv")
    ours = [line for line in lines if line["accuracy"]]
    assert len(ours) == len(tested) * 4
    assert all(0 <= float(line["accuracy"]) <= 100 and line["episodes"] == "3" for line in ours)
    differing = [line for line in ours if line["difference"]]
    baselines = {line["row"]: line["baseline"] for line in differing}
    assert baselines == {"pmn": "pmn-without-hallucination", "wdae-gnn-ep": "wdae-gnn"}
    cells = {(line["row"], line["column"]): float(line["accuracy"]) for line in ours}
    for line in differing:
        gap = float(line["accuracy"]) - cells[line["baseline"], line["column"]]
        assert float(line["difference"]) == pytest.approx(gap, abs=2e-4)
    printed = {(line["row"], line["column"]): line["paper_accuracy"] for line in lines}
    assert printed["wDAE-GNN+EP", "nov1"] == "50.07"
    text = (project.folder / "tables/imagenetfs.tex").read_text(encoding="utf-8")
    assert r"50.07\ci{0.27}" in text
    assert len(re.findall("wDAE-GNN", text)) == 5  # the paper's two rows, our two, the caption
    assert "not comparable" in text


def test_a_second_run_has_nothing_to_do(built):
    assert built[0].snakemake("--cores", "2", *TARGETS).nothing_to_do


def test_the_variants_train_what_is_not_there_and_are_no_part_of_all(built):
    project, _ = built
    plan = Plan(project.folder / "config", SCALE)
    known, variants = (
        {at.run.recipe for at in plan.tables.cells(name)}
        for name in ("imagenetfs", "imagenetfs-variants")
    )
    trained = {plan.imagenet_fs.generator_method(method) for method in variants} - known
    jobs = project.snakemake("-n", "tables/imagenetfs-variants.tex").jobs
    assert jobs["imagenet_fs_generator"] == len(trained) > 0
    assert jobs["imagenet_fs_evaluate"] == len(variants - known) > len(trained)
    assert "imagenet_fs_classifier" not in jobs
    everything = project.snakemake("-n", "all")
    assert everything.jobs["all"] == 1
    assert "tables/main.tex" in everything.text
    assert "imagenetfs-variants" not in everything.text


def test_the_paper_scale_plans_both_readings_and_networks_with_their_resources(project):
    run = project.snakemake("-n", TARGETS[0], "--config", "scale=paper")
    assert run.code == 0, run.text
    # Two of them with rotations, two with Batch SGM.
    assert run.jobs["imagenet_fs_classifier"] == 8
    assert (run.jobs["imagenet_fs_features"], run.jobs["data"]) == (8, 4)
    assert run.jobs["imagenet_fs_exemplars"] == 2
    features = run.text.split("rule imagenet_fs_features:")[1].split("rule ")[0]
    assert re.search(r"runtime=480\b", features)
    classifier = run.text.split("rule imagenet_fs_classifier:")[1].split("rule ")[0]
    assert re.search(r"mem_mb=32000\b", classifier)
    assert re.search(r"runtime=14400\b", classifier)


def test_a_scale_without_it_says_that_there_is_no_such_table(project):
    refused = project.snakemake("-n", TARGETS[0])
    assert refused.code != 0
    assert TARGETS[0] in refused.text
    assert "Traceback" not in refused.text
