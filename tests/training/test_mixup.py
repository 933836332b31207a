"""Manifold mixup: the loss by hand at every place, and what the recipe learns."""

import pytest
import torch
from plans import plan_of
from torch.nn import functional

from epcore.backbones.checkpoint import build
from epcore.backbones.config import BackboneConfig
from epcore.data.episodes import pool_of, sample
from epcore.data.store import ImageStore
from epcore.training.mixup import MixupLoss
from epcore.training.pretrain import PretrainingTask
from epcore.training.pretraining_loss import PretrainingLoss, PretrainingModel
from epcore.training.process_group import ALONE

CPU = torch.device("cpu")
NARROW = {"conv4": "1/8", "resnet12": "1/8", "wide-resnet": "1/10"}


@pytest.fixture
def stage():
    stage = plan_of("demo").runs.pretrain("glyph-mini", "conv4", "s2m2", 0)
    pretraining = stage.pretraining.model_copy(update={"epochs": 1, "batch_size": 8})
    return stage.model_copy(update={"pretraining": pretraining, "precision": "fp32"})


def model_of(architecture):
    torch.manual_seed(0)
    backbone = build(BackboneConfig(architecture=architecture, width=NARROW[architecture]))
    model = PretrainingModel(backbone, classes=6, heads="cosine")
    return model.eval()  # running statistics, so that images do not meet in BatchNorm


def features_by_stages(backbone, images, place, mix):
    """Features of a batch that is mixed at a place, from the network cut behind that stage."""
    if place == 0:
        return backbone(mix(images))
    kept = {}
    stage = backbone.stages[place - 1]
    handle = stage.register_forward_hook(lambda _m, _i, maps: kept.update(maps=maps))
    backbone(images)
    handle.remove()
    mixed = mix(kept["maps"])
    handle = stage.register_forward_hook(lambda _m, _i, _o: mixed)
    features = backbone(images)
    handle.remove()
    return features


@pytest.mark.parametrize("architecture", NARROW)
def test_the_loss_is_that_of_the_mixtures_and_of_the_rotations(stage, architecture):
    """At each place: the input, and behind each stage of the network."""
    model = model_of(architecture).requires_grad_(False)
    labels = torch.tensor([0, 3, 5, 1, 1, 2, 4, 0])
    images = torch.rand(8 + 4 * 2, 3, 28, 28)
    places = set()
    for seed in range(30):
        torch.manual_seed(seed)
        loss = MixupLoss(PretrainingLoss(model, stage, CPU, ALONE), 2.0)(images, labels)
        torch.manual_seed(seed)
        share = float(torch.distributions.Beta(2.0, 2.0).sample())
        partners = torch.randperm(8)
        place = int(torch.randint(len(model.backbone.stages) + 1, ()))
        places.add(place)
        features = features_by_stages(
            model.backbone,
            images[:8],
            place,
            lambda maps, s=share, p=partners: s * maps + (1 - s) * maps[p],
        )
        logs = model.class_head(features).log_softmax(dim=-1)
        expected = 0
        for image in range(8):
            own, other = labels[image], labels[partners[image]]
            expected -= (share * logs[image, own] + (1 - share) * logs[image, other]) / 8
        turned = model.backbone(images[8:])
        both = functional.cross_entropy(model.class_head(turned), labels[:2].repeat(4))
        both += functional.cross_entropy(
            model.rotation_head(turned), torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
        )
        assert loss.item() == pytest.approx(float(expected + both / 2), rel=1e-5)
    assert places == set(range(len(model.backbone.stages) + 1))
    assert len(places) == {"conv4": 5, "resnet12": 5, "wide-resnet": 4}[architecture]


def test_a_step_sees_the_batch_and_a_quarter_of_it_in_four_rotations(stage, toy):
    store = ImageStore.open(toy.data)
    validation = sample(pool_of(store, "val"), 5, 1, 5, 4, seed=7)
    task = PretrainingTask(stage, store, validation, CPU)
    assert task.images_per_step == 16
    seen = []
    task.loss = lambda images, labels: seen.append((images, labels)) or images.sum()
    next(iter(task.losses(0, 0, torch.Generator())))
    ((images, labels),) = seen
    assert (len(images), len(labels)) == (16, 8)
    for turns in range(4):
        turned = images[8 + 2 * turns : 10 + 2 * turns]
        assert torch.equal(turned, images[:2].rot90(turns, (2, 3)))
