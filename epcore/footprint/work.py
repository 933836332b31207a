"""What a job computes and what it leaves on disk."""

import math
from dataclasses import dataclass, field, replace

from epcore.footprint import imagenet_fs_work
from epcore.footprint.amount import RESUME, TRAINING, Work, solving
from epcore.footprint.sizes import Size
from epcore.plan import Plan
from epcore.plan.jobs import Job
from epcore.plan.models import Optimisation, Protocol
from epcore.plan.network import Effort, effort, feature_size


@dataclass(frozen=True)
class Passes:
    """Forward passes of images, and episodes `(count, images in each)` that are solved."""

    images: float = 0
    episodes: list[tuple[float, int]] = field(default_factory=list)


def epochs(settings: Optimisation, early: bool) -> int:
    """How long a training lasts, if it never stops early, or as early as it can.

    It stops once the learning rate fell by `stop_ratio`; each drop takes `patience` + 1 epochs
    without a gain, after one first epoch.
    """
    if not early or settings.stop_ratio <= 0 or settings.schedule == "cosine":
        return settings.epochs
    # Multiplied as the training does: 0.1 four times is a little more than 1e-4, and so not enough.
    rate, drops = settings.learning_rate, 0
    while rate > settings.learning_rate * settings.stop_ratio:
        rate, drops = rate * settings.plateau.factor, drops + 1
    return min(settings.epochs, 1 + drops * (settings.plateau.patience + 1))


def work_of(plan: Plan, job: Job, sizes: dict[str, Size], early: bool) -> Work:
    """Of one job; `early` if its training stops as early as it can."""
    size = sizes.get(job.dataset)
    if job.rule == "fetch":
        files = plan.sources[job.name].files.values()
        total = float(sum(file.size or 0 for file in files if file.urls))
        return Work(download=total, disk=total)
    if job.rule == "alpha":
        pairs = len(plan.alpha_runs()) * len(plan.figures.alpha.label_alphas)
        return solving([_episodes(plan, plan.figures.alpha.protocol)] * pairs)
    if size is None:
        return Work()
    if job.rule == "data":
        return Work(images=size.total, disk=size.total * (3 * size.pixels**2 + 8))
    if job.rule == "episodes":
        count, images = _episodes(plan, job.protocols[0])
        return Work(disk=8.0 * count * images)
    if job.rule == "evaluate":
        tested = [_episodes(plan, protocol) for protocol in job.protocols]
        return replace(solving(tested), disk=15 * sum(count for count, _ in tested))
    if plan.imagenet_fs and job.rule.startswith("imagenet_fs_"):
        return imagenet_fs_work.work_of(plan.imagenet_fs, job, sizes)
    if job.rule not in ("pretrain", "finetune", "embed"):
        return Work()
    passes = {"pretrain": _pretrain, "finetune": _finetune, "embed": _embed}[job.rule](
        plan, job, size, early
    )
    one, network = _effort(plan, job, size), plan.backbone(job.backbone)
    embedding = job.rule == "embed"
    values = passes.images * feature_size(network) if embedding else float(one.weights)
    return replace(
        solving(passes.episodes),
        multiply_adds=passes.images * one.multiply_adds,
        values=passes.images * one.values,
        disk=4 * values,
        resume=0 if embedding else RESUME * values,
    )


def _effort(plan: Plan, job: Job, size: Size) -> Effort:
    seen = plan.recipe(job.recipe, job.backbone).view
    return effort(plan.backbone(job.backbone), max(1, round(size.pixels * seen.crop)))


def _pretrain(plan: Plan, job: Job, size: Size, early: bool) -> Passes:
    settings = plan.pretraining(job.dataset, job.backbone, job.recipe)
    count, images = epochs(settings, early), settings.batch_size * settings.copies
    steps = size.images["base"] // settings.batch_size
    validated, solved = _validation(plan, "val-5way-5shot", size)
    return Passes(
        count * (TRAINING * steps * images + validated),
        [(TRAINING * count * steps, images), (count * solved[0], solved[1])],
    )


def _finetune(plan: Plan, job: Job, size: Size, early: bool) -> Passes:
    settings = plan.recipe(job.recipe, job.backbone).finetuning
    shot = int(job.checkpoint.removeprefix("finetune-").removesuffix("shot"))
    count, images = epochs(settings, early), settings.way * (shot + settings.queries)
    steps = settings.episodes_per_epoch
    validated, solved = _validation(plan, f"val-5way-{shot}shot", size)
    return Passes(
        count * (TRAINING * steps * images + validated),
        [(TRAINING * count * steps, images), (count * solved[0], solved[1])],
    )


def _embed(plan: Plan, job: Job, size: Size, early: bool) -> Passes:
    """The images that the episodes touch, of each split."""
    names = plan.tested_protocols(job.dataset, job.backbone, job.recipe, job.checkpoint)
    drawn = {"val": 0.0, "novel": 0.0}
    for name in names:
        count, images = _episodes(plan, name)
        drawn[plan.protocols[name].split] += count * images
    return Passes(sum(_touched(drawn[s], size.images[s]) for s in ("val", "novel")))


def _validation(plan: Plan, name: str, size: Size) -> tuple[float, tuple[float, int]]:
    """Images that a validation embeds, and the episodes that it solves."""
    count, images = _episodes(plan, name)
    return _touched(count * images, size.images["val"]), (count, images)


def _touched(drawn: float, images: float) -> float:
    """How many of the images are expected to be among `drawn` ones: n (1 - exp(-drawn / n))."""
    return -images * math.expm1(-drawn / images)


def _episodes(plan: Plan, name: str) -> tuple[float, int]:
    """How many episodes a protocol has at this scale, and the images of each."""
    asked: Protocol = plan.protocols[name]
    count = getattr(plan.scale.episodes, asked.split)
    images = asked.way * (asked.shot + asked.queries + asked.unlabeled)
    return min(count, asked.episodes or count), images
