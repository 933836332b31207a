"""TransMatch against its authors' steps written out, and a toy where unlabeled images help."""

import copy
import json
from fractions import Fraction

import numpy as np
import pytest
import torch
from episode_batches import batch_of
from torch.nn import functional

from epcore.backbones.build import build_backbone
from epcore.backbones.checkpoint import Checkpoint, state_of
from epcore.backbones.config import BackboneConfig
from epcore.classifiers.episodes import EpisodeBatch
from epcore.data.config import View
from epcore.data.episodes import pool_of, sample
from epcore.errors import UserError
from epcore.evaluation import meta_test
from epcore.evaluation.config import MetaTestConfig
from epcore.evaluation.meta_test import EpisodicTester
from epcore.files import meta_of
from epcore.methods import build_method
from epcore.methods._shifts import Shifts
from epcore.methods.base import Pretrained

WAY, SHOT, EACH, UNLABELED, PIXELS = 3, 2, 2, 6, 28
LABELED, QUERIES = WAY * SHOT, WAY * EACH
WHOLE = View.model_validate({"resize": 1, "crop": 1})
CLASSES = torch.arange(WAY).repeat_interleave(SHOT)


def build(way=WAY, **options):
    """In float64, on a Conv-4 of random weights."""
    torch.manual_seed(0)
    backbone = build_backbone("conv4", Fraction(1, 8)).double()
    start = Pretrained(backbone, torch.empty(0, 8), scale=4)
    return build_method({"name": "transmatch", **options}, PIXELS, way, "here", start)


def episodes_of(count=2, seed=1):
    torch.manual_seed(seed)
    images = torch.rand(count, LABELED + QUERIES + WAY * UNLABELED, 3, PIXELS, PIXELS).double()
    return batch_of(images.flatten(2), WAY, SHOT, QUERIES)


def scores(method, episodes):
    with torch.no_grad():
        return method.scores(episodes)


# -- an episode, image by image --------------------------------------------------------------------


def shifted(image, offset, mirrored):
    """numpy's own mirrored border, and a window of it."""
    most = 3
    padded = np.pad(image.numpy(), ((0, 0), (most, most), (most, most)), mode="reflect")
    down, right = most - offset
    window = padded[:, down : down + PIXELS, right : right + PIXELS]
    return torch.from_numpy((window[:, :, ::-1] if mirrored else window).copy())


def all_shifted(images, shifts):
    triples = zip(images, shifts.offsets, shifts.mirrored, strict=True)
    return torch.stack([shifted(*triple) for triple in triples])


def test_images_are_moved_and_mirrored():
    images = torch.rand(40, 3, PIXELS, PIXELS).double()
    shifts = Shifts.draw(np.random.default_rng(0), 40, 3, mirror=True)
    assert torch.equal(shifts.of(images), all_shifted(images, shifts))
    assert {-3, 3} <= {*shifts.offsets.flatten()} <= {*range(-3, 4)}
    assert 10 < shifts.mirrored.sum() < 30
    assert not Shifts.draw(np.random.default_rng(0), 40, 3, mirror=False).mirrored.any()


class Written:
    """The authors' classifier: features of unit length, times a scale, times weights."""

    def __init__(self, method):
        self.network, self.scale = copy.deepcopy(method.backbone), torch.tensor(4.0).double()
        self.weights = None

    def parameters(self):
        return [*self.network.parameters(), self.weights, self.scale]

    def features(self, images):
        return torch.stack([v / v.norm() for v in self.network(images)])

    def logits(self, images):
        return (self.scale * self.features(images)) @ self.weights.T

    def imprint(self, method, support, random):
        self.network.eval()
        views = [all_shifted(support, method._shifts(random, LABELED)) for _ in range(10)]
        features = torch.stack([self.features(view) for view in views]).detach()
        means = [features[:, k == CLASSES].flatten(0, 1).mean(dim=0) for k in range(WAY)]
        self.weights = torch.stack([mean / mean.norm() for mean in means])


def swapped(batches):
    """The first batch exchanges its middle with the second one's, its end with the third one's."""
    first, second, third = (list(batch) for batch in batches)
    first[5:10], second[5:10] = second[5:10], first[5:10]
    first[10:16], third[10:16] = third[10:16], first[10:16]
    return [torch.stack(batch) for batch in (first, second, third)]


def loss_of_step(written, options, support, unlabeled, draw):
    images = [support[i] for i in draw.labeled] + [unlabeled[i] for i in draw.unlabeled] * 2
    images = all_shifted(images, draw.shifts)
    with torch.no_grad():
        one, other = (written.logits(view).softmax(dim=1) for view in (images[16:32], images[32:]))
    sharp = ((one + other) / 2) ** (1 / options.temperature)
    guesses = sharp / sharp.sum(dim=1, keepdim=True)
    labels = functional.one_hot(CLASSES[draw.labeled], WAY).double()
    targets, share = torch.cat([labels, guesses, guesses]), draw.share
    mixed = [
        (share * images[i] + (1 - share) * images[j], share * targets[i] + (1 - share) * targets[j])
        for i, j in enumerate(draw.partners)
    ]
    batches = swapped(torch.stack([image for image, _ in mixed]).split(16))
    outputs = torch.cat(swapped([written.logits(batch) for batch in batches]))
    entropy = [-(y * o.log_softmax(0)).sum() for o, (_, y) in zip(outputs, mixed, strict=True)]
    errors = [((o.softmax(0) - y) ** 2).mean() for o, (_, y) in zip(outputs, mixed, strict=True)]
    weight = options.unlabeled_weight
    return torch.stack(entropy[:16]).mean() + weight * torch.stack(errors[16:]).mean()


def scores_written_out(method, images, number):
    """Of an episode; its random numbers are those of the method."""
    options, written = method.options, Written(method)
    random = np.random.default_rng(number)
    support, queries, unlabeled = images.split([LABELED, QUERIES, WAY * UNLABELED])
    written.imprint(method, support, random)
    velocity = None
    written.network.train()
    for draw in method.draws(random, len(support), len(unlabeled)):
        parameters = written.parameters()
        for parameter in parameters:
            parameter.requires_grad_()
        loss = loss_of_step(written, options, support, unlabeled, draw)
        slopes = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            slopes = [s + options.weight_decay * p for s, p in zip(slopes, parameters, strict=True)]
            old = velocity or [torch.zeros_like(slope) for slope in slopes]
            velocity = [0.9 * v + s for v, s in zip(old, slopes, strict=True)]
            for parameter, v in zip(parameters, velocity, strict=True):
                parameter.sub_(options.learning_rate * v).mul_(1 - 0.02 * options.learning_rate)
            written.weights.div_(written.weights.norm(dim=1, keepdim=True))
    written.network.eval()
    return written.logits(queries).detach()


FEW = {
    "steps": 3, "learning_rate": 0.05, "weight_decay": 0.5, "moved": 0.1, "temperature": 0.4,
    "mixup": 0.6, "unlabeled_weight": 3,
}  # fmt: skip


def test_scores_are_those_of_the_authors_steps():
    method, episodes = build(**FEW), episodes_of()
    found = scores(method, episodes)
    for number, points in enumerate(episodes.points):
        images = points.reshape(-1, 3, PIXELS, PIXELS)
        expected = scores_written_out(method, images, number)
        torch.testing.assert_close(found[number], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", [*FEW, "mirrored", "seed"])
def test_every_setting_matters(name):
    other = {"mirrored": False, "seed": 1}.get(name) if name not in FEW else 1.5 * FEW[name]
    other = 4 if name == "steps" else other
    found, changed_by = (
        scores(build(**settings), episodes_of(1)) for settings in (FEW, FEW | {name: other})
    )
    assert (found - changed_by).abs().max() > 1e-7


def test_dropout_is_that_of_the_episode():
    """WRN has some. Scored twice, and by itself, an episode has the same scores."""
    torch.manual_seed(0)
    network = build_backbone("wide-resnet", Fraction(1, 10), Fraction(1, 4))
    start = Pretrained(network, torch.empty(0, network.feature_size), scale=4)
    settings = {"name": "transmatch", "steps": 1, "learning_rate": 0.01}
    method = build_method(settings, PIXELS, WAY, "here", start)
    episodes = episodes_of()
    points = episodes.points.float()
    both = scores(method, batch_of(points, WAY, SHOT, QUERIES))
    torch.manual_seed(1)
    assert torch.equal(scores(method, batch_of(points, WAY, SHOT, QUERIES)), both)
    second = EpisodeBatch(
        points[1:], WAY, SHOT, QUERIES, numbers=torch.tensor([1]), unlabeled=WAY * UNLABELED
    )
    assert torch.equal(scores(method, second), both[1:])
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout2d):
            module.p = 0
    assert not torch.allclose(scores(method, batch_of(points, WAY, SHOT, QUERIES)), both)


def test_an_episode_leaves_the_network_as_it_was():
    method, episodes = build(**FEW), episodes_of()
    before = copy.deepcopy(method.state_dict())
    first, second = scores(method, episodes), scores(method, episodes)
    assert torch.equal(first, second)
    for name, weights in method.state_dict().items():
        assert torch.equal(weights, before[name]), name


def test_its_steps_reach_the_queries_in_bfloat16():
    """Autocast keeps what it has cast of the first weights, unless it is told not to.

    The two differences were 0.04 of each other, with what autocast keeps 0.17.
    """
    episodes = episodes_of(1)
    points = batch_of(episodes.points.float(), WAY, SHOT, QUERIES)
    found = {}
    for steps in (1, 12):
        options = FEW | {"steps": steps, "learning_rate": 0.02, "weight_decay": 0}
        method = build(**options).float()
        found[steps, "float32"] = scores(method, points)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found[steps, "bfloat16"] = scores(method, points)
    of_steps = (found[12, "float32"] - found[1, "float32"]).norm()
    of_precision = (found[12, "bfloat16"] - found[12, "float32"]).norm()
    assert of_precision < of_steps / 10


def test_batches_have_each_image_as_often_as_they_can():
    method = build(steps=7)
    draws = list(method.draws(np.random.default_rng(0), 4, 40))
    labeled, unlabeled = (
        np.stack([getattr(draw, kind) for draw in draws]) for kind in ("labeled", "unlabeled")
    )
    # 20 copies of 4 images are five batches, 40 images two and a half.
    assert (np.bincount(labeled[:5].flatten()) == 20).all()
    for first in (0, 2, 4):
        assert np.bincount(unlabeled[first : first + 2].flatten()).max() == 1
    assert all(0.5 <= draw.share <= 1 for draw in draws)


def test_episodes_without_unlabeled_images_are_told():
    images = torch.rand(1, LABELED + QUERIES, 3 * PIXELS**2).double()
    with pytest.raises(UserError, match="unlabeled images"):
        build().scores(batch_of(images, WAY, SHOT, QUERIES))


# -- the stage ------------------------------------------------------------------------------------


def test_its_test_is_of_the_first_episodes_and_starts_from_a_pretrained_network(dimmed, tmp_path):
    """Of the store's images, and of the number that an episode has among all."""
    torch.manual_seed(0)
    network = build_backbone("conv4", Fraction(1, 8))
    head = {"weight": torch.rand(24, 8), "scale": torch.tensor(4.0)}
    backbone = BackboneConfig(architecture="conv4", width="1/8")
    Checkpoint(backbone, state_of(network), head).save(tmp_path / "pretrain.pt")
    episodes = sample(pool_of(dimmed, "novel"), 5, 1, 2, 4, seed=7, unlabeled=7)
    episodes.save(tmp_path / "episodes.npz")
    config = MetaTestConfig(
        backbone=backbone, view=WHOLE, precision="fp32", way=5, batch_statistics=False, episodes=3,
        method={"name": "transmatch", "steps": 2, "learning_rate": 0.1},
    )  # fmt: skip
    files = (tmp_path / "pretrain.pt", tmp_path / "episodes.npz", tmp_path / "scores.csv")
    meta_test.run(config, dimmed.directory, *files)
    found = np.loadtxt(files[2], delimiter=",", skiprows=1)[:, 1]

    method = build_method(config.method, PIXELS, 5, "here", Pretrained(network, head["weight"], 4))
    images = torch.from_numpy(dimmed.pixels(episodes.images().flatten())).permute(0, 3, 1, 2)
    points = (images / 127.5 - 1).reshape(4, -1, 3 * PIXELS**2)
    numbered = EpisodeBatch(points, 5, 1, 10, numbers=torch.arange(4), unlabeled=35)
    right = scores(method, numbered).argmax(dim=-1) == torch.arange(5).repeat_interleave(2)
    assert list(found) == pytest.approx(right.double().mean(dim=1)[:3].tolist(), abs=1e-6)
    assert json.loads(meta_of(files[2]).read_text(encoding="utf-8"))["episodes"] == 3


# -- toys ------------------------------------------------------------------------------------------


def accuracies(store, **options):
    """Of a network of random weights behind each episode's steps, with seven unlabeled images."""
    torch.manual_seed(0)
    start = Pretrained(build_backbone("conv4", Fraction(1, 8)), torch.empty(0, 8), scale=10)
    settings = {"steps": 40, "learning_rate": 0.01, "weight_decay": 0, "mirrored": False}
    settings |= {"name": "transmatch"} | options
    method = build_method(settings, PIXELS, 5, "here", start)
    episodes = sample(pool_of(store, "novel"), 5, 1, 4, 10, seed=7, unlabeled=7)
    tester = EpisodicTester(method, WHOLE, "fp32", torch.device("cpu"))
    return tester.test(store, episodes).accuracies


@pytest.mark.slow
def test_it_learns_from_labeled_and_more_from_unlabeled_images(dimmed):
    imprinted = accuracies(dimmed, steps=1, learning_rate=1e-9).mean()
    labeled = accuracies(dimmed, unlabeled_weight=0).mean()
    both = accuracies(dimmed).mean()
    assert imprinted + 0.4 < labeled < both - 0.03


@pytest.mark.slow
def test_it_stays_at_chance_where_labels_mean_nothing(shuffled):
    found = accuracies(shuffled)
    spread = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - 0.2) < 4 * spread
    assert spread < 0.03
