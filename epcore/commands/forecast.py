"""The forecast: the jobs that Snakemake plans, times what such jobs took."""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from epcore.commands.dry_run import Job, planned
from epcore.commands.estimate import estimate
from epcore.config.scale import MainConfig
from epcore.footprint.ledger import read
from epcore.footprint.machine import carbon_intensity
from epcore.footprint.medians import COLUMNS, Key, Median, medians, read_medians
from epcore.plan import Plan
from epcore.plan.paths import LEDGER
from epcore.runtime.gpus import local_gpus

LIKE_IT = (
    "of the same stage, backbone and device, and of the same data set and compared method if there "
    "were any"
)
SOURCES = {
    "ledger": f"median of the jobs that finished here, {LIKE_IT}",
    "measured": f"median of jobs on another machine, {LIKE_IT}: config/measured.csv",
    "estimate": "images x multiply-adds x 3 / rate of config/footprint.yaml; no early stop",
    "unknown": "no such job was measured at this scale",
    "copy": "nothing is computed",
}
# Stage and source -> hours and kWh of each of its jobs, None where they are not known.
Costs = dict[tuple[str, str], list[tuple[float | None, float | None]]]


def costs(plan: Plan, jobs: Iterable[Job], device: str, ledger: dict[Key, Median]) -> Costs:
    """What jobs cost; those that can use a GPU run on `device`, cpu or gpu."""
    shipped = read_medians(plan.registry.config / "measured.csv", plan.registry.scale_name)
    known = {key: ("measured", one) for key, one in shipped.items()}
    known |= {key: ("ledger", one) for key, one in ledger.items()}
    found: Costs = defaultdict(list)
    for job in jobs:
        names = (job.wildcards.get("dataset", ""), job.backbone, job.wildcards.get("recipe", ""))
        key = Key.of(job.stage, *names, device if job.gpu else "cpu")
        if not job.stage:
            found[job.rule, "copy"].append((0, 0))
        elif key not in known and (seconds := estimate(plan, job, key.device)):
            found[job.stage, "estimate"].append((seconds / 3600, None))
        elif median := known.get(key) or known.get(key.pooled):
            source, one = median
            found[job.stage, source].append((one.seconds / 3600, one.kwh))
        else:
            found[job.stage, "unknown"].append((None, None))
    return found


def format_forecast(found: Costs, factor: float) -> str:
    """A table by stage and source, and its sum; `factor` in kg of CO2-equivalent per kWh."""
    everything = [cost for jobs in found.values() for cost in jobs]
    known = [cost for cost in everything if cost[0] is not None]
    lines = ["", f"  {'stage':<24}{'jobs':>6}{'hours':>10}{'kWh':>10}  source"]
    for (stage, source), jobs in {**found, ("sum of what is known", ""): known}.items():
        hours, kwh = map(_sum, zip(*jobs, strict=True)) if jobs else ("?", "?")
        lines.append(f"  {stage:<24}{len(jobs):>6}{hours:>10}{kwh:>10}  {source}".rstrip())
    kg = _sum(kwh and factor * kwh for _, kwh in known)
    lines += ["", f"  CO2 of what is known: {kg} kg CO2-equivalent at {factor:g} kg/kWh"]
    used = {source for _, source in found}
    lines += [f"  {name}: {said}" for name, said in SOURCES.items() if name in used]
    return "\n".join(lines)


def _sum(values: Iterable[float | None]) -> str:
    """The sum of what is known; none where all that is known are copies, which cost nothing."""
    each = list(values)
    known = [value for value in each if value is not None]
    if None in each and not any(known):
        return "?"
    return (f"{sum(known):,.0f}" if sum(known) >= 99.5 else f"{sum(known):.2g}") if known else "?"


def run(
    targets: list[str],
    settings: Path,
    main: MainConfig,
    device: str | None,
    medians_alone: bool,
) -> None:
    """The command `forecast`; `medians_alone` prints those of the ledger instead (.csv)."""
    plan, scale = Plan(settings, main.scale, main.seeds), main.scale
    path = Path(LEDGER.format(scale=scale))
    if medians_alone:
        rows = [
            (scale, *key, one.jobs, f"{one.seconds:.4g}", f"{one.kwh:.4g}")
            for key, one in medians(read(path)).items()
        ]
        csv.writer(sys.stdout, lineterminator="\n").writerows([COLUMNS, *rows])
        return
    chosen = device or ("gpu" if plan.registry.scale.requires_gpu or local_gpus() else "cpu")
    jobs = planned(plan, targets)
    several = "s" if len(plan.registry.seeds) > 1 else ""
    print(
        f"Forecast of {' '.join(targets)} at scale {scale}: {len(jobs)} jobs to run, "
        f"trainings on the {chosen.upper()} with seed{several} "
        f"{', '.join(map(str, plan.registry.seeds))}."
    )
    known = medians(read(path)) if path.is_file() else {}
    if jobs:
        factor = carbon_intensity(plan.registry.footprint)
        print(format_forecast(costs(plan, jobs, chosen, known), factor))
