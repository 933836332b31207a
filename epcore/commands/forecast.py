"""The forecast: the jobs that Snakemake plans, times what such jobs took."""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from epcore.commands.dry_run import Job, planned
from epcore.commands.estimate import estimate
from epcore.config.scale import MainConfig
from epcore.footprint.energy import read
from epcore.footprint.medians import COLUMNS, Key, Median, medians, read_medians
from epcore.plan import Plan
from epcore.plan.paths import ENERGY
from epcore.runtime.gpus import local_gpus

LIKE_IT = (
    "of the same stage, backbone and device, and of the same data set and compared method if there "
    "were any"
)
SOURCES = {
    "here": f"median of the jobs that finished here, {LIKE_IT}",
    "measured": f"median of jobs on another machine, {LIKE_IT}: config/measured.csv",
    "estimate": "images x multiply-adds x 3 / rate of config/footprint.yaml; no early stop",
    "unknown": "no such job was measured at this scale",
}
# Stage and source -> hours and kWh of each of its jobs, None where they are not known.
Costs = dict[tuple[str, str], list[tuple[float | None, float | None]]]


def costs(plan: Plan, jobs: Iterable[Job], device: str, medians: dict[Key, Median]) -> Costs:
    """What jobs cost that compute; those that can use a GPU run on `device`, cpu or gpu."""
    shipped = read_medians(plan.registry.config / "measured.csv", plan.registry.scale_name)
    sourced = {key: ("measured", of_jobs) for key, of_jobs in shipped.items()}
    sourced |= {key: ("here", of_jobs) for key, of_jobs in medians.items()}
    by_stage: Costs = defaultdict(list)
    for job in (job for job in jobs if job.stage):
        names = (job.wildcards.get("dataset", ""), job.backbone, job.wildcards.get("recipe", ""))
        key = Key.of(job.stage, *names, device if job.gpu else "cpu")
        if key not in sourced and (seconds := estimate(plan, job, key.device)):
            by_stage[job.stage, "estimate"].append((seconds / 3600, None))
        elif median := sourced.get(key) or sourced.get(key.pooled):
            source, of_jobs = median
            by_stage[job.stage, source].append((of_jobs.seconds / 3600, of_jobs.kwh))
        else:
            by_stage[job.stage, "unknown"].append((None, None))
    return by_stage


def format_forecast(by_stage: Costs, factor: float) -> str:
    """A table by stage and source, and its sum; `factor` in kg of CO2-equivalent per kWh."""
    all_costs = [cost for jobs in by_stage.values() for cost in jobs]
    estimated = [cost for cost in all_costs if cost[0] is not None]
    lines = ["", f"  {'stage':<24}{'jobs':>6}{'hours':>10}{'kWh':>10}  source"]
    for (stage, source), jobs in {**by_stage, ("sum of what is known", ""): estimated}.items():
        hours, kwh = map(_sum, zip(*jobs, strict=True)) if jobs else ("?", "?")
        lines.append(f"  {stage:<24}{len(jobs):>6}{hours:>10}{kwh:>10}  {source}".rstrip())
    kg = _sum(kwh and factor * kwh for _, kwh in estimated)
    lines += ["", f"  CO2 of what is known: {kg} kg CO2-equivalent at {factor:g} kg/kWh"]
    used = {source for _, source in by_stage}
    lines += [f"  {name}: {text}" for name, text in SOURCES.items() if name in used]
    return "\n".join(lines)


def _sum(values: Iterable[float | None]) -> str:
    """The sum of the known values, or "?" if none is known."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return "?"
    return f"{sum(numbers):,.0f}" if sum(numbers) >= 99.5 else f"{sum(numbers):.2g}"


def run(
    targets: list[str],
    settings: Path,
    main: MainConfig,
    device: str | None,
    medians_alone: bool,
) -> None:
    """The command `forecast`; with `medians_alone` it prints the medians of the scale as CSV."""
    plan, scale = Plan(settings, main.scale, main.seeds), main.scale
    path = Path(ENERGY.format(scale=scale))
    if medians_alone:
        rows = [
            (scale, *key, median.jobs, f"{median.seconds:.4g}", f"{median.kwh:.4g}")
            for key, median in medians(read(path)).items()
        ]
        csv.writer(sys.stdout, lineterminator="\n").writerows([COLUMNS, *rows])
        return
    kind = device or ("gpu" if plan.registry.scale.requires_gpu or local_gpus() else "cpu")
    jobs = planned(plan, targets)
    several = "s" if len(plan.registry.seeds) > 1 else ""
    print(
        f"Forecast of {' '.join(targets)} at scale {scale}: {len(jobs)} jobs to run, "
        f"trainings on the {kind.upper()} with seed{several} "
        f"{', '.join(map(str, plan.registry.seeds))}."
    )
    measured = medians(read(path)) if path.is_dir() else {}
    if jobs:
        factor = plan.registry.footprint.carbon_intensity
        print(format_forecast(costs(plan, jobs, kind, measured), factor))
