"""How long a job will take: work divided by throughput, corrected by what ledgers know."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Literal, get_args

from epcore.errors import UserError
from epcore.footprint.amount import Work
from epcore.footprint.ledger import Entry, read
from epcore.footprint.sizes import Size, published_size, size_of
from epcore.footprint.work import work_of
from epcore.plan import Plan
from epcore.plan.footprint import Costs, read_costs
from epcore.plan.jobs import Job, Jobs

Device = Literal["cpu", "gpu"]
Key = tuple[str, str, str]
ON_GPU = (  # the rules that use one
    *("pretrain", "finetune", "embed"),
    *("imagenet_fs_classifier", "imagenet_fs_features", "imagenet_fs_generator"),
)
# Rules of several threads -> where the plan has the resources that say how many.
THREADED = {
    "data": "scale.resources.data",
    "pretrain": "scale.resources",
    "finetune": "scale.resources",
    "embed": "scale.resources.embed",
    "evaluate": "scale.resources.evaluate",
    "alpha": "scale.resources",
    "interpolation": "scale.resources",
    "imagenet_fs_classifier": "imagenet_fs.scale.resources.network",
    "imagenet_fs_features": "imagenet_fs.scale.resources.features",
    "imagenet_fs_generator": "imagenet_fs.scale.resources.weights",
    "imagenet_fs_evaluate": "imagenet_fs.scale.resources.weights",
}
QUICK = 120.0  # seconds of a job that a cluster is not worth asking for
KNOWN_SPREAD = 1.3  # of jobs like those that a ledger knows


@dataclass(frozen=True)
class Range:
    """From `low` to `high`."""

    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> "Range":
        return Range(self.low * factor, self.high * factor)

    def spread(self, factor: float) -> "Range":
        """Wider by a factor on either side."""
        return Range(self.low / factor, self.high * factor)

    @property
    def middle(self) -> float:
        """The geometric mean."""
        return math.sqrt(self.low * self.high)


@dataclass(frozen=True)
class Estimate:
    """device: what the job mostly keeps busy. hours: of cores or of the GPU. wall: hours.

    disk: bytes that it leaves, and those with what it keeps meanwhile to resume from.
    """

    job: Job
    device: Device
    hours: Range
    wall: Range
    kwh: Range
    disk: Range
    from_ledger: bool


@dataclass(frozen=True)
class Experience:
    """What finished jobs took, compared with the costs of costs.yaml.

    ratios: (rule, backbone, device) -> median of real over estimated hours. kwh_per_hour: device
    -> median. attempts: how many they come from.
    """

    ratios: dict[Key, float]
    kwh_per_hour: dict[str, float]
    attempts: int


NOTHING_KNOWN = Experience({}, {}, 0)


class Estimator:
    """Estimates jobs of one plan on one kind of device.

    Args:
        plan: the scale.
        device: what trains and embeds.
        experience: what ledgers know.
    """

    def __init__(self, plan: Plan, device: Device, experience: Experience = NOTHING_KNOWN) -> None:
        self.plan, self.device, self.experience = plan, device, experience
        self.costs: Costs = read_costs(plan.config)
        few, many = self.costs.images_per_class
        self._sizes: list[dict[str, Size]] = [
            {name: size_of(plan, name, count) for name in plan.datasets} for count in (few, many)
        ]

    @property
    def guessed(self) -> set[str]:
        """Data sets of which nobody has said how many images they have."""
        return {name for name, size in self._sizes[0].items() if size.guessed}

    def works(self, job: Job) -> tuple[Work, Work]:
        """The least and the most work that the job may be."""
        small, large = self._sizes
        return work_of(self.plan, job, small, True), work_of(self.plan, job, large, False)

    def device_of(self, job: Job) -> Device:
        return "gpu" if self.device == "gpu" and job.rule in ON_GPU else "cpu"

    def together(self, job: Job) -> int:
        """Cores that the job keeps busy at once; of a GPU one."""
        if self.device_of(job) == "gpu" or job.rule not in THREADED:
            return 1
        return int(attrgetter(THREADED[job.rule])(self.plan).threads)

    def unscaled(self, job: Job) -> Range:
        """Hours of cores or of the GPU by costs.yaml, before its spread."""
        device = self.device_of(job)
        least, most = self.works(job)
        return Range(self._seconds(job, least, device), self._seconds(job, most, device)) * (
            1 / 3600
        )

    def __call__(self, job: Job) -> Estimate:
        device, (least, most) = self.device_of(job), self.works(job)
        cost, known = self.costs.devices[device], self.experience
        hours = self.unscaled(job)
        ratio = known.ratios.get((job.rule, job.backbone, device))
        hours = hours.spread(cost.spread) if ratio is None else (hours * ratio).spread(KNOWN_SPREAD)
        if (power := known.kwh_per_hour.get(device)) is not None:
            kwh = Range(hours.low * power, hours.high * power)
        else:
            watts = Range(cost.watts, cost.watts).spread(cost.watts_spread)
            pue = self.plan.footprint.pue
            kwh = Range(hours.low * watts.low, hours.high * watts.high) * (pue / 1000)
        return Estimate(
            job=job,
            device=device,
            hours=hours,
            wall=hours * (1 / self.together(job)),
            kwh=kwh,
            disk=Range(least.disk, most.disk + most.resume),
            from_ledger=ratio is not None,
        )

    def _seconds(self, job: Job, work: Work, device: Device) -> float:
        cost = self.costs.devices[device]
        speed = getattr(cost, self.plan.scale.precision)
        start = self.costs.start.get(job.rule, self.costs.start["other"])
        kind = self.plan.datasets[job.dataset].kind if job.dataset else "other"
        image = self.costs.image.get(kind, self.costs.image["other"])
        return float(
            start
            + work.multiply_adds / speed.multiply_adds
            + work.values / speed.values
            + work.pairs / cost.pairs
            + work.cubes / cost.cubes
            + work.images * image
            + work.rows * self.costs.row
            + work.download / self.costs.download
        )


def quick_datasets(plan: Plan) -> list[str]:
    """Data sets that are packed in less than `QUICK` seconds of one core.

    By what is published of them, whether they are built or not, so that one is always packed in the
    same place; one whose size is not known is none of them.
    """
    costs, quick = read_costs(plan.config), []
    for name, settings in plan.datasets.items():
        size = published_size(plan, name, 1)
        image = costs.image.get(settings.kind, costs.image["other"])
        if not size.guessed and costs.start["data"] + size.total * image < QUICK:
            quick.append(name)
    return quick


def learn(plan: Plan, ledgers: Iterable[Path]) -> Experience:
    """What the jobs took that ledgers know, of this scale and of others.

    Of a rule and backbone that this scale's jobs know, the others' say nothing.
    """
    jobs = _finished(entry for ledger in ledgers for entry in read(ledger))
    known: dict[str, _Comparison] = {}
    own: dict[Key, list[float]] = defaultdict(list)
    others: dict[Key, list[float]] = defaultdict(list)
    powers: dict[str, list[float]] = defaultdict(list)
    for entry, hours in jobs:
        device: Device = "cpu" if entry.device == "cpu" else "gpu"
        scale = "".join(entry.job.split("/")[1:2])
        try:
            if scale not in known:
                of_scale = plan if scale == plan.scale_name else Plan(plan.config, scale)
                known[scale] = _Comparison(of_scale)
        except UserError:
            continue  # a scale that is no more
        if entry.stage == "fetch":
            continue  # it waits for a network, which its processor time says nothing of
        if _hours(entry) > 0 and (job := known[scale].jobs.of_file(entry.job)) is not None:
            powers[device].append(entry.kwh / _hours(entry))
            expected = known[scale].estimators[device].unscaled(job).middle
            ratios = own if scale == plan.scale_name else others
            ratios[job.rule, job.backbone, device].append(hours / expected)
    return Experience(
        {key: median(values) for key, values in {**others, **own}.items()},
        {device: median(values) for device, values in powers.items()},
        sum(map(len, powers.values())),
    )


def _hours(entry: Entry) -> float:
    """Of cores, or of the GPU."""
    return (entry.cpu_seconds if entry.device == "cpu" else entry.seconds) / 3600


def _finished(entries: Iterable[Entry]) -> list[tuple[Entry, float]]:
    """Attempts that finished their job, and the hours of each and of those before that did not.

    A training that was killed took all its attempts together. One whose checkpoint was lost was
    made again in seconds, so that what took less than half of a job's longest is left out.
    """
    spent: dict[tuple[str, str], float] = defaultdict(float)
    found: dict[tuple[str, str], list[tuple[Entry, float]]] = defaultdict(list)
    for entry in entries:
        key = entry.job, entry.device
        spent[key] += _hours(entry)
        if entry.state == "finished":
            found[key].append((entry, spent.pop(key)))
    longest = {key: max(hours for _, hours in same) for key, same in found.items()}
    return [one for key, same in found.items() for one in same if one[1] >= longest[key] / 2]


class _Comparison:
    """The jobs of a scale, and what costs.yaml says of them."""

    def __init__(self, plan: Plan) -> None:
        devices: tuple[Device, ...] = get_args(Device)
        self.jobs = Jobs(plan)
        self.estimators = {device: Estimator(plan, device) for device in devices}
