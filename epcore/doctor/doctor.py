"""The command `doctor`."""

from pathlib import Path

from epcore.doctor.cluster import check_profile
from epcore.doctor.data import check_data, check_disk
from epcore.doctor.environment import LOCK, check_factor, check_gpus, check_packages
from epcore.errors import UserError
from epcore.footprint.estimate import quick_datasets
from epcore.plan import Plan
from epcore.plan.jobs import Jobs
from epcore.plan.load import read_yaml


def run(
    targets: list[str],
    settings: Path,
    scale: str,
    root: Path | None,
    profile: Path | None,
    seeds: list[int] | None = None,
) -> None:
    """Prints what there is and what is missing; `root` is config.yaml's unless it is given.

    Raises:
        UserError: if anything is missing, or a target is unknown.
    """
    plan = Plan(settings, scale, seeds)
    datasets = datasets_of(plan, targets)
    root = root or data_root(settings)
    findings = [
        *check_packages(settings.parent / LOCK),
        *check_gpus(plan.scale.requires_gpu, profile is not None),
        *(
            check_profile(profile, plan.scale.resources.gpus, asked_minutes(plan, targets))
            if profile
            else []
        ),
        *check_factor(plan.footprint),
        *check_data(plan, datasets, root),
        *check_disk(plan, targets, datasets, root),
    ]
    print(f"For {' '.join(targets)} at scale {scale}:")
    print("\n".join(map(str, findings)))
    missing = sum(bool(finding.remedy) for finding in findings)
    if missing:
        raise UserError(f"{missing} of {len(findings)} checks ask for something, see above")


def asked_minutes(plan: Plan, targets: list[str]) -> dict[str, int]:
    """Of the first try of what a cluster gets for the targets; with a training its embedding."""
    resources, quick = plan.scale.resources, quick_datasets(plan)
    training = resources.runtime + resources.embed.runtime
    minutes = {"data": resources.data.runtime, "pretrain": training, "finetune": training}
    if plan.imagenet_fs:
        own = plan.imagenet_fs.scale.resources
        minutes["imagenet_fs_classifier"] = own.network.runtime
        minutes["imagenet_fs_features"] = own.features.runtime
        minutes["imagenet_fs_generator"] = own.weights.runtime
    jobs = Jobs(plan).of(*targets)
    needed = {job.rule for job in jobs if job.rule != "data" or job.dataset not in quick}
    return {rule: asked for rule, asked in minutes.items() if rule in needed}


def data_root(settings: Path) -> Path:
    """The folder that Snakemake downloads to.

    Raises:
        UserError: if config.yaml cannot be read, or does not say it.
    """
    config = read_yaml(settings / "config.yaml")
    Plan.scale_of(config)  # all keys are there
    return Path(str(config["data_root"]))


def datasets_of(plan: Plan, targets: list[str]) -> list[str]:
    """The data sets that targets of the workflow are made from.

    Raises:
        UserError: for a target that the plan does not know.
    """
    jobs = Jobs(plan).of(*targets)
    return list(dict.fromkeys(job.dataset for job in jobs if job.rule == "data"))
