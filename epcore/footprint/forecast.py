"""The forecast: what a target will cost, said before anything runs."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from epcore.errors import UserError
from epcore.footprint.estimate import Device, Estimate, Estimator, Range, learn
from epcore.footprint.machine import carbon_intensity
from epcore.plan import Plan
from epcore.plan.jobs import Job, Jobs
from epcore.plan.paths import LEDGER

GIB = 2**30
SMALL = 0.002  # of the energy: rules that are told together


@dataclass(frozen=True)
class Forecast:
    """estimates: of the jobs that are left; done: how many have their file; wall: hours.

    devices: GPUs, or cores where nothing runs on a GPU.
    """

    targets: tuple[str, ...]
    estimates: list[Estimate]
    done: int
    device: Device
    devices: int
    wall: Range
    attempts: int
    guessed: tuple[str, ...]

    def total(self, quantity: str, device: Device | None = None) -> Range:
        """The sum of `hours`, `kwh` or `disk`, of the jobs on a device or of all."""
        chosen = [e for e in self.estimates if device in (None, e.device)]
        return sum((getattr(estimate, quantity) for estimate in chosen), Range())


def forecast(
    plan: Plan,
    targets: Sequence[str],
    devices: int | None = None,
    device: Device | None = None,
    ledgers: Sequence[Path] = (),
    finished_too: bool = False,
) -> Forecast:
    """What the targets cost, as far as their files are not there yet.

    Args:
        plan: the scale.
        targets: as one would tell Snakemake.
        devices: GPUs, or cores without a GPU; one GPU or all cores if it is not given.
        device: what trains and embeds; a GPU where the scale requires one.
        ledgers: refine what costs.yaml says.
        finished_too: count what is there already as well.

    Raises:
        UserError: for an unknown target or a ledger that is not there.
    """
    chosen: Device = device or ("gpu" if plan.scale.requires_gpu else "cpu")
    experience = learn(plan, ledgers)
    estimator = Estimator(plan, chosen, experience)
    jobs = Jobs(plan).of(*targets)
    left = jobs if finished_too else [job for job in jobs if not Path(job.path).exists()]
    estimates = {job: estimator(job) for job in left}
    count = devices or (1 if chosen == "gpu" else os.cpu_count() or 1)
    guessed = {job.dataset for job in left} & estimator.guessed
    return Forecast(
        targets=tuple(targets),
        estimates=list(estimates.values()),
        done=len(jobs) - len(left),
        device=chosen,
        devices=count,
        wall=wall_time(plan, estimates, chosen, count),
        attempts=experience.attempts,
        guessed=tuple(sorted(guessed)),
    )


def wall_time(plan: Plan, estimates: dict[Job, Estimate], device: Device, devices: int) -> Range:
    """Hours until the last of the jobs has ended, given in an order in which they can run.

    At least the longest chain of jobs that wait for each other, and the sum divided by how many
    run at once; at most the two together (Graham, 1966, for any order that never idles).
    """
    together = devices if device == "gpu" else max(1, devices // plan.scale.resources.threads)
    chains: dict[Job, Range] = {}
    for job, estimate in estimates.items():
        before = [chains[needed] for needed in job.needs if needed in chains]
        low = max((chain.low for chain in before), default=0.0)
        high = max((chain.high for chain in before), default=0.0)
        chains[job] = Range(low, high) + estimate.wall
    longest_low = max((chain.low for chain in chains.values()), default=0.0)
    longest_high = max((chain.high for chain in chains.values()), default=0.0)
    total = sum((estimate.wall for estimate in estimates.values()), Range()) * (1 / together)
    most = total.high if together == 1 else total.high + longest_high * (1 - 1 / together)
    return Range(max(longest_low, total.low), most)


def tell(plan: Plan, found: Forecast, factor: float) -> str:
    """The forecast as text; `factor` in kg of CO2-equivalent per kWh."""
    jobs = f"{len(found.estimates)} jobs to run"
    if found.done:
        jobs += f", {found.done} done already"
    unit = {"gpu": "GPU", "cpu": "core"}[found.device]
    rows: list[tuple[str, ...]] = [("rule", "jobs", "GPU hours", "core hours", "kWh")]
    kwh = found.total("kwh")
    small: list[Estimate] = []
    for rule in dict.fromkeys(estimate.job.rule for estimate in found.estimates):
        own = [estimate for estimate in found.estimates if estimate.job.rule == rule]
        if sum(estimate.kwh.high for estimate in own) < SMALL * kwh.high:
            small += own
        else:
            rows.append(_row(rule, own))
    rows += [_row("other rules", small)] if small else []
    rows.append(_row("total", found.estimates))
    lines = [f"Forecast of {' '.join(found.targets)} at scale {plan.scale_name}: {jobs}.", ""]
    lines += [*_aligned(rows), ""]
    facts = {
        f"wall time on {found.devices} {unit}{'s' * (found.devices > 1)}": _duration(found.wall),
        "energy": f"{_span(kwh)} kWh",
        "CO2": f"{_span(kwh * factor)} kg CO2-equivalent at {factor:g} kg/kWh",
        "disk": f"{_span(found.total('disk') * (1 / GIB))} GiB, the more while trainings go on",
    }
    lines += [f"  {name + ':':<26}{value}" for name, value in facts.items()]
    lines += ["", *(f"  {note}" for note in _notes(found))]
    return "\n".join(lines)


def _row(rule: str, estimates: list[Estimate]) -> tuple[str, ...]:
    def cell(quantity: str, device: str | None = None) -> str:
        chosen = [e for e in estimates if device in (None, e.device)]
        total = sum((getattr(estimate, quantity) for estimate in chosen), Range())
        return _span(total) if chosen else "-"

    hours = (cell("hours", "gpu"), cell("hours", "cpu"))
    return (rule, str(len(estimates)), *hours, cell("kwh"))


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table: names to the left, numbers to the right."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return ["  ".join(["", f"{row[0]:<{first}}", *map(str.rjust, row[1:], others)]) for row in rows]


def _notes(found: Forecast) -> list[str]:
    known = sum(estimate.from_ledger for estimate in found.estimates)
    notes = [
        "A range goes from trainings that stop as early as they can to those that never stop "
        "early, with the",
        "uncertainty of the costs. Files of the target that exist count as done.",
        f"Costs: of {known} jobs from {found.attempts} finished attempts in the ledger, of "
        f"{len(found.estimates) - known} from config/costs.yaml"
        + (", whose GPU is of the V100 class." if found.device == "gpu" else "."),
    ]
    if found.guessed:
        notes.append(f"Guessed, because not built yet: how many images {', '.join(found.guessed)}")
    return notes


def _span(span: Range) -> str:
    return f"{_short(span.low)} to {_short(span.high)}"


def _short(value: float) -> str:
    """Two significant digits, in full."""
    if value <= 0:
        return "0"
    digits = 1 - math.floor(math.log10(value))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def gibibytes(size: float) -> str:
    """Bytes as people say them."""
    return f"{_short(size / GIB)} GiB"


def _duration(hours: Range) -> str:
    for unit, length in (("days", 24.0), ("hours", 1.0), ("minutes", 1 / 60)):
        if hours.high >= 2 * length:
            return f"{_span(hours * (1 / length))} {unit}"
    return f"{_span(hours * 3600)} seconds"


def ledgers() -> list[Path]:
    """Those of all scales."""
    return sorted(Path().glob(LEDGER.format(scale="*")))


def run(
    targets: list[str],
    settings: Path,
    scale: str,
    devices: int | None,
    device: Device | None,
    ledger: list[Path] | None,
    from_nothing: bool,
    seeds: list[int] | None = None,
) -> None:
    """The command `forecast`."""
    if devices is not None and devices < 1:
        raise UserError(f"--devices: expected 1 or more, got {devices}")
    plan = Plan(settings, scale, seeds)
    plan.check()
    known = ledgers() if ledger is None else ledger
    found = forecast(plan, targets, devices, device, known, from_nothing)
    print(tell(plan, found, carbon_intensity(plan.footprint)))
