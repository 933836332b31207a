"""All tables and figures: planned at every scale with nothing twice, and two of them for real."""

import re
import shlex
import shutil
from collections import Counter
from dataclasses import replace

import pytest
from figure_files import lines_of

from epcore.plan import Plan

pytestmark = pytest.mark.workflow

SCORING = ("evaluate", "evaluate-classifiers", "meta-test")
STAGES = ("pretrain", "finetune", "embed", "meta-train", *SCORING)


def commands(run):
    """(stage, file that is written) -> all else that the stage is told, and what it reads."""
    found = {}
    for line in re.findall(r"^Shell command: epcore (.*) > ", run.text, re.M):
        stage, *words = shlex.split(line)
        if stage in STAGES:
            at = words.index("--out")
            found[stage, words[at + 1]] = (stage, *words[:at], *words[at + 2 :])
    return found


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_everything_is_planned_and_nothing_is_computed_twice(project, scale):
    """Two files that are told the same, input for input, would be the same file."""
    run = project.snakemake("-n", "-p", "all", "--config", f"scale={scale}")
    assert run.code == 0, run.text
    told = commands(run)
    twice = [words for words, count in Counter(told.values()).items() if count > 1]
    assert not twice
    counts = Counter(stage for stage, _ in told)
    for stage in STAGES:
        assert counts[stage] == run.jobs.get(stage.replace("-", "_"), 0)
    plan = Plan(project.folder / "config", scale)
    tables = plan.tables.shown.items()
    ours = [name for name, table in tables if table.imagenet_fs is None and table.in_all]
    scores = {cell.scores.file for table in ours for cell in plan.tables.measured(table)}
    assert {out for stage, out in told if stage in SCORING} == scores
    outputs = re.findall(r"^    output: ((?:tables|figures|reports)/.+)$", run.text, re.M)
    copied = [copy for line in outputs for copy in line.split(", ")]
    copies = {f"tables/{name}.tex" for name in (*plan.main_tables, "claims", "co2")}
    for name in (*plan.covered_figures, "co2"):
        copies |= {f"figures/{name}.pdf", f"figures/{name}.png"}
    assert set(copied) == copies | {"reports/co2.csv", "reports/co2.md"}
    assert run.jobs["publish"] + run.jobs["publish_figure"] == len(outputs)


def test_the_ablations_are_a_target_of_their_own(project):
    """The propagator's table is of ResNet-12, which this scale has not."""
    run = project.snakemake("-n", "ablation_pipeline")
    assert (run.jobs["publish"], run.jobs["publish_figure"]) == (1, 2)
    assert "finetune" in run.jobs


# -- for real --------------------------------------------------------------------------------------

TARGETS = ("tables/ssl-partial.tex", "figures/alpha.png")


@pytest.fixture(scope="module")
def more_once(finished_once, tmp_path_factory):
    """The finished project, and on top of it a table and a figure; two candidates for alpha."""
    folder = tmp_path_factory.mktemp("more") / "my project"
    shutil.copytree(finished_once[0].folder, folder)
    project = replace(finished_once[0], folder=folder)
    project.replace("config/footprint.yaml", "tracking: true", "tracking: false")  # for time
    for file, key, value in (
        ("config/scales/demo.yaml", r"recipes: \[test-alpha.*\]", "recipes: [alpha-02, rot-lp-ep]"),
        ("config/figures.yaml", r"label_alphas: .*", "label_alphas: [0.2, 0.5, 0.9]"),
    ):
        text, count = re.subn(key, value, (folder / file).read_text(encoding="utf-8"))
        assert count == 1
        (folder / file).write_text(text, encoding="utf-8")
    run = project.snakemake("--cores", "2", *TARGETS)
    assert run.code == 0, run.text
    return project, run


def test_another_table_of_the_same_networks_trains_nothing_and_alpha_only_its_candidate(more_once):
    """EPNet's pretrained network is the candidate 0.5."""
    jobs = more_once[1].jobs
    assert jobs["pretrain"] == 1
    assert "finetune" not in jobs
    assert jobs["embed"] == 2  # the pretrained network of each candidate
    assert (jobs["episodes"], jobs["evaluate"]) == (3, 6)  # three protocols, and two recipes


def test_the_table_of_partial_labels_has_every_cell_of_ours_with_its_difference(more_once):
    project, _ = more_once
    ours = {
        (line["row"], line["column"]): line
        for line in lines_of(project.folder / "results/tiny/tables/ssl-partial.csv")
        if line["accuracy"]
    }
    rows, columns = ("--Net_SSL", "EPNet_SSL"), ("20", "40", "60", "100")
    assert ours.keys() == {(row, column) for row in rows for column in columns}
    for column in columns:
        net, epnet = (ours[row, column] for row in rows)
        assert (net["episodes"], epnet["episodes"]) == ("12", "12")
        assert (net["baseline"], epnet["baseline"]) == ("", "--Net_SSL")
        gap = float(epnet["accuracy"]) - float(net["accuracy"])
        assert float(epnet["difference"]) == pytest.approx(gap, abs=2e-4)
    assert len({ours["EPNet_SSL", column]["accuracy"] for column in columns}) > 1
    whole = ours["EPNet_SSL", "100"]
    (main,) = (
        line
        for line in lines_of(project.folder / "results/tiny/tables/main.csv")
        if (line["block"], line["row"], line["column"]) == ("CONV-4", "EPNet", "mini5")
    )
    assert whole["accuracy"] == main["accuracy"] != ""
    assert whole["paper_accuracy"] == "59.32"
    assert "20" in (project.folder / "tables/ssl-partial.tex").read_text()


def test_the_search_for_alpha_has_every_pair_and_is_published_as_picture_and_numbers(more_once):
    project, _ = more_once
    lines = lines_of(project.folder / "results/tiny/figures/alpha.csv")
    pairs = {(float(line["embedding_alpha"]), float(line["label_alpha"])) for line in lines}
    assert pairs == {(one, other) for one in (0.2, 0.5) for other in (0.2, 0.5, 0.9)}
    best = max(float(line["accuracy"]) for line in lines)
    chosen = [line for line in lines if line["chosen"] == "True"]
    assert [float(line["accuracy"]) for line in chosen] == [best]
    made = (project.folder / "results/tiny/figures/alpha.png").read_bytes()
    assert (project.folder / "figures/alpha.png").read_bytes() == made
    assert made.startswith(b"\x89PNG")


def test_a_second_run_of_a_table_and_a_figure_has_nothing_to_do(more_once):
    assert more_once[0].snakemake("--cores", "2", *TARGETS).nothing_to_do
