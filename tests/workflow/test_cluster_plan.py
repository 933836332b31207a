"""What the profile for clusters makes of the paper's scale: which jobs SLURM gets, and how long."""

import re
from collections import Counter
from pathlib import Path

import pytest

from epcore.footprint.estimate import Estimator
from epcore.plan import Plan
from epcore.plan.jobs import Jobs

TARGETS = ("all", "tables/imagenetfs-variants.tex")
SHORTEST = 120  # seconds
ROOT = Path(__file__).parents[2]
ALONE = {"data", "imagenet_fs_classifier", "imagenet_fs_features", "imagenet_fs_generator"}


@pytest.fixture(scope="module")
def planned(project_in, tmp_path_factory):
    """The dry run of everything, and how long a job that makes a file takes on a V100, by
    config/costs.yaml, if its training stops as early as it can.
    """
    project = project_in(tmp_path_factory.mktemp("cluster"))
    profile = ("--profile", "workflow/profiles/slurm", "--config", "scale=paper")
    run = project.snakemake("-n", *TARGETS, *profile)
    assert run.code == 0, run.text
    plan = Plan(project.folder / "config", "paper")
    jobs, estimator = Jobs(plan), Estimator(plan, "gpu")

    def seconds(file):
        job = jobs.of_file(file)
        return 3600 * estimator.unscaled(job).low / estimator.together(job)

    return run.text, seconds


def blocks(text, indent):
    """Rule and first output of each job that stands so far to the right."""
    lines = rf"(?:{indent}    .*\n)*?{indent}    output: ([^,\n]*)"
    return re.findall(rf"^{indent}rule (\w+):\n{lines}", text, re.M)


def groups(text):
    """Name of each group -> its jobs."""
    parts = re.split(r"^\[.*\] Group job (\S+) \(jobs", text, flags=re.M)[1:]
    named = zip(parts[::2], parts[1::2], strict=True)
    return [(name, blocks(re.split(r"^\[", body, flags=re.M)[0], "    ")) for name, body in named]


def test_a_training_and_what_takes_seconds_after_it_are_one_job(planned):
    kinds = set()
    for name, jobs in groups(planned[0]):
        kinds.add((re.search(r"_s0_(\w+)", name)[1], *sorted({rule for rule, _ in jobs})))
    assert kinds == {
        ("pretrain", "pretrain"),
        ("pretrain", "embed", "pretrain"),
        ("finetune", "embed", "finetune"),
    }


def test_no_job_of_a_cluster_is_short(planned):
    text, seconds = planned
    for name, jobs in groups(text):
        assert sum(seconds(file) for _, file in jobs) > SHORTEST, name
    alone = Counter()
    for rule, file in blocks(text, ""):
        if rule in ALONE:
            alone[rule] += 1
            made = file.replace("images.npy", "store.json") if rule == "data" else file
            assert seconds(made) > SHORTEST, file
    assert alone.keys() == ALONE


@pytest.mark.parametrize("scale", ["demo", "paper"])
def test_no_target_leaves_an_embedding_to_another(scale):
    """Once its training is done, it would be a job by itself."""
    plan = Plan(ROOT / "config", scale)
    jobs = Jobs(plan)
    embeddings = [job for job in jobs.of("all") if job.rule == "embed"]
    assert len(embeddings) > 60
    targets = [f"tables/{name}.tex" for name in plan.covered_tables + plan.imagenet_fs_tables]
    targets += [f"figures/{name}.{end}" for name in plan.covered_figures for end in ("pdf", "png")]
    for target in (*targets, "ablation_pipeline", "reports/co2.csv"):
        made = set(jobs.of(target))
        trained = {job for job in made if job.rule in ("pretrain", "finetune")}
        left = [e.path for e in embeddings if e not in made and trained & {*e.needs}]
        assert not left, target


def test_all_other_rules_stay_where_snakemake_runs(planned):
    """Read from the rules, since a dry run does not say it."""
    files = [file.read_text() for file in (ROOT / "workflow/rules").glob("*.smk")]
    bodies = re.findall(r"^ *(?:use )?rule\b.*:\n((?: .*\n|\n)+)", "".join(files), re.M)
    away = [body for body in bodies if "shell:" in body and "localrule: True" not in body]
    assert len(away) == len(ALONE) + 3  # pretrain, finetune, embed
    (quick,) = [body for body in bodies if "QUICK_DATASETS),\n" in body and "shell:" not in body]
    assert "localrule: True" in quick
    assert [
        Path(file).parent.name for rule, file in blocks(planned[0], "") if rule == "data_quick"
    ] == ["cub"]
