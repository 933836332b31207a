"""The command `doctor`."""

from collections.abc import Iterable
from pathlib import Path

from epcore.commands.check_methods import check_methods
from epcore.commands.doctor.cluster import check_profile
from epcore.commands.doctor.data import check_data, check_disk, own_and_built
from epcore.commands.doctor.environment import LOCK, check_factor, check_gpus, check_packages
from epcore.commands.doctor.finding import Finding
from epcore.commands.dry_run import Job, planned
from epcore.config.scale import MainConfig
from epcore.errors import UserError
from epcore.plan import Plan

IMPORT = "put it beside the Snakefile, install its package, or `export PYTHONPATH=FOLDER`"


def run(
    targets: list[str],
    settings: Path,
    main: MainConfig,
    root: Path | None,
    profile: Path | None,
) -> None:
    """Prints what is present and what is missing; `root` defaults to config.yaml's data_root.

    Raises:
        UserError: if anything is missing, or Snakemake cannot plan a target.
    """
    plan, scale = Plan(settings, main.scale, main.seeds), main.scale
    plan.check()
    plan.registry.check_recipes(plan.registry.recipes.names)
    check_methods(plan, plan.registry.recipes.names)
    root = root or Path(main.data_root)
    required = plan.registry.scale.requires_gpu and not main.allow_cpu
    unusable = plan.registry.recipes.unusable
    print(f"For {' '.join(targets)} at scale {scale}:")
    findings = _shown(
        [
            *check_packages(settings.parent / LOCK),
            *check_gpus(required, profile is not None),
            *check_factor(plan.registry.footprint),
            *(Finding("classifiers", problem, IMPORT) for problem in unusable.values()),
        ]
    )
    jobs = planned(plan, targets)
    # A change of one's own photographs makes no job: what was built of them is looked at always.
    datasets = sorted({*datasets_of(jobs), *own_and_built(plan)})
    gpus = plan.registry.scale.resources.gpus
    findings += _shown(
        [
            *(check_profile(profile, gpus, asked_minutes(plan, jobs)) if profile else []),
            *check_data(plan, datasets, root),
            *check_disk(plan, datasets, root),
        ]
    )
    missing = sum(bool(finding.remedy) for finding in findings)
    if missing:
        raise UserError(f"{missing} of {len(findings)} checks ask for something, see above")


def _shown(findings: list[Finding]) -> list[Finding]:
    """Prints them; what Snakemake needs comes before what only it can say."""
    print(*findings, sep="\n", flush=True)
    return findings


def asked_minutes(plan: Plan, jobs: Iterable[Job]) -> dict[str, int]:
    """Rule -> minutes that its first try asks of a cluster; a training with its embedding."""
    resources = plan.registry.scale.resources
    training = resources.runtime + resources.embed.runtime
    minutes = {"data": resources.data.runtime, "meta_train": resources.runtime}
    minutes |= {"pretrain": training, "finetune": training}
    if plan.imagenet_fs:
        own = plan.imagenet_fs.scale.resources
        minutes["imagenet_fs_classifier"] = own.network.runtime
        minutes["imagenet_fs_features"] = own.features.runtime
        minutes["imagenet_fs_generator"] = own.weights.runtime
    needed = {job.rule for job in jobs}
    return {rule: asked for rule, asked in minutes.items() if rule in needed}


def datasets_of(jobs: Iterable[Job]) -> list[str]:
    """The data sets that jobs are to run on, in the order of their names."""
    return sorted({job.wildcards["dataset"] for job in jobs if "dataset" in job.wildcards})
