"""What the profile for clusters makes of the paper's scale: which jobs SLURM gets, and how long."""

import re
from pathlib import Path

import pytest

from epcore.footprint.estimate import Estimator
from epcore.plan import Plan
from epcore.plan.jobs import Jobs

TARGETS = ("all", "tables/imagenetfs-variants.tex")
SHORTEST = 120  # seconds


@pytest.fixture(scope="module")
def planned(project_in, tmp_path_factory):
    """The dry run of everything, and what a job that makes a file takes at least on a GPU."""
    project = project_in(tmp_path_factory.mktemp("cluster"))
    profile = ("--profile", "workflow/profiles/slurm", "--config", "scale=paper")
    run = project.snakemake("-n", *TARGETS, *profile)
    assert run.code == 0, run.text
    plan = Plan(project.folder / "config", "paper")
    jobs, estimator = Jobs(plan), Estimator(plan, "gpu")

    def seconds(file):
        job = jobs.of_file(file) or jobs.of_file(Path(file).parent.as_posix())
        return 3600 * estimator.unscaled(job).low

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
        ("classifier", "imagenet_fs_classifier", "imagenet_fs_features"),
        ("generator", "imagenet_fs_evaluate", "imagenet_fs_generator"),
    }
    alone = {rule for rule, _ in blocks(planned[0], "")}
    assert not alone & {rule for _, *rules in kinds for rule in rules}


def test_no_job_of_a_cluster_is_short(planned):
    text, seconds = planned
    for name, jobs in groups(text):
        assert sum(seconds(file) for _, file in jobs) > SHORTEST, name
    packed = [Path(file).parent for rule, file in blocks(text, "") if rule == "data"]
    assert len(packed) == 6
    for folder in packed:
        assert seconds(f"{folder}/store.json") > SHORTEST, folder
    (here,) = (Path(file).parent.name for rule, file in blocks(text, "") if rule == "data_quick")
    assert here == "cub"
