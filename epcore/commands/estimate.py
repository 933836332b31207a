"""The time of a training that nothing like it was measured of: one line of arithmetic."""

from functools import cache

from epcore.backbones.config import BackboneConfig
from epcore.commands.dry_run import Job
from epcore.data.datasets import GlyphPictures, OwnData
from epcore.errors import UserError
from epcore.plan import Plan


def estimate(plan: Plan, job: Job, device: str) -> float | None:
    """Seconds, if it never stops early; None unless it is a training whose images are known.

    Images seen x multiply-adds of an image in the backbone x 3, as backward is two forward passes,
    / the rate of the GPUs or the cores that a training has. What methods have behind the backbone,
    up to as much again, is left out.
    """
    names, rates = job.wildcards, plan.registry.footprint.multiply_adds
    resources = plan.registry.scale.resources
    together = resources.gpus if job.stage == "pretrain" else 1
    rate = rates.gpu * together if device == "gpu" else rates.cpu * resources.threads
    if job.stage == "imagenet-fs-classifier" and plan.imagenet_fs:
        settings = plan.imagenet_fs.settings.classifier
        images = settings.epochs * settings.steps * settings.batch_size
        network, view = plan.imagenet_fs.backbone(job.backbone), plan.imagenet_fs.settings.view
    elif job.stage == "meta-train":
        location = (names["dataset"], job.backbone, names["recipe"])
        stage = plan.compared.meta_train(*location, 0, int(names["shot"]))
        way, shot, queries = stage.episode
        images_per_class = shot + queries + (stage.training.unlabeled or 0)
        training = stage.training
        images = training.epochs * training.steps * training.tasks * way * images_per_class
        network, view = stage.backbone, stage.view
    elif job.stage == "meta-test" and names["recipe"] not in plan.compared.trained:
        tested = plan.compared.meta_test(
            names["dataset"], job.backbone, names["recipe"], names["protocol"]
        )
        episodes = tested.episodes or plan.registry.scale.episodes.novel
        # Three batches forward and back, two more forward: a third of that.
        images = episodes * tested.method["steps"] * (3 * 16 + 2 * 16 / 3)
        network, view = tested.backbone, tested.view
    elif job.stage in ("pretrain", "finetune"):
        recipe = plan.registry.recipes.resolve(names["recipe"], job.backbone)
        network, view = plan.registry.backbone(job.backbone), recipe.view
        if job.stage == "pretrain":
            first = plan.runs.pretraining(names["dataset"], job.backbone, names["recipe"])
            base = _base_images(plan, names["dataset"])
            images = first.epochs * base * first.images_per_step // first.batch_size
        else:
            second = recipe.finetuning
            episode_images = second.way * (int(names["shot"]) + second.queries)
            images = second.epochs * second.episodes_per_epoch * episode_images
    else:
        return None
    pixels = round(plan.registry.datasets[names["dataset"]].image_size * view.crop)
    return images * multiply_adds(network, pixels) * 3 / rate or None


def _base_images(plan: Plan, dataset: str) -> int:
    """Number of base images of a data set, as drawn, listed or published; 0 if it is unknown."""
    settings = plan.registry.datasets[dataset]
    if isinstance(settings, OwnData):
        from epcore.data.build import contents_of
        from epcore.data.sources import Sources

        try:
            contents = contents_of(settings, Sources.read([]))
        except UserError:  # its job will say what is wrong with it
            return 0
        return sum(contents.classes[label].split == "base" for label in contents.labels)
    if isinstance(settings, GlyphPictures):
        from epcore.data.builders.glyph_classes import select_classes

        classes = sum(c.split == "base" for c in select_classes(settings.selection).values())
        return classes * settings.images_per_class.base
    published = getattr(settings, "expected", None)
    return published.images.base if published and published.images else 0


@cache
def multiply_adds(backbone: BackboneConfig, pixels: int) -> int:
    """Multiply-adds of a forward pass of an image of `pixels` x `pixels`, counted, not computed."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from epcore.backbones.build import build_backbone

    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        network = build_backbone(backbone.architecture, backbone.width, backbone.depth)
        network.eval()(torch.empty(1, 3, pixels, pixels))
    return int(counter.get_total_flops()) // 2
