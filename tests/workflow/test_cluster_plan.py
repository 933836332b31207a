"""What the profile for clusters makes of the paper's scale: which jobs SLURM gets."""

import re
from pathlib import Path

import pytest

from epcore.plan import Plan

pytestmark = pytest.mark.slow

TARGETS = ("all", "tables/imagenetfs-variants.tex")
ROOT = Path(__file__).parents[2]
ALONE = {
    "data",
    "imagenet_fs_classifier",
    "imagenet_fs_features",
    "imagenet_fs_generator",
    "imagenet_fs_evaluate_long",
}


@pytest.fixture(scope="module")
def cluster(project_in, tmp_path_factory):
    """Snakemake's dry run of some targets at the paper's scale, with the profile for clusters."""
    project = project_in(tmp_path_factory.mktemp("cluster"))
    profile = ("--profile", "workflow/profiles/slurm", "--config", "scale=paper")

    def dry_run(*targets):
        run = project.snakemake("-n", *targets, *profile)
        assert run.code == 0, run.text
        return run.text

    return dry_run


@pytest.fixture(scope="module")
def planned(cluster):
    """That of everything."""
    return cluster(*TARGETS)


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
    for name, jobs in groups(planned):
        kinds.add((re.search(r"_s0_(\w+)", name)[1], *sorted({rule for rule, _ in jobs})))
    assert kinds == {
        ("pretrain", "pretrain"),
        ("pretrain", "embed", "pretrain"),
        ("pretrain", "base_classes", "embed", "pretrain"),
        ("finetune", "embed", "finetune"),
        ("finetune", "base_classes", "embed", "finetune"),
    }


def test_no_training_or_embedding_is_a_job_of_its_own(planned):
    alone = {rule for rule, _ in blocks(planned, "")}
    assert alone >= ALONE
    assert not alone & {"pretrain", "finetune", "embed", "base_classes"}


def test_compared_methods_ask_for_a_gpu_and_for_the_memory_and_time_of_the_scale(cluster):
    """Each training and each test is a job of its own."""
    text = cluster("tables/compared.tex")
    scale = Plan(ROOT / "config", "paper").registry.scale.resources
    for rule in ("meta_train", "meta_test"):
        asked = re.findall(rf"^rule {rule}:\n(?:    .*\n)*?    resources: (.*)", text, re.M)
        assert len(asked) == 17 * 2 * 2  # methods, data sets, shots
        for line in asked:
            found = dict(re.findall(r"(\w+)=([^,]+)", line))
            assert (found["gpu"], found["slurm_partition"], found["nodes"]) == ("1", "gpu", "1")
            assert int(found["mem_mb"]) == scale.mem_mb
            assert int(found["runtime"]) == scale.runtime
            assert found["slurm_extra"] == "--signal=TERM@120"
