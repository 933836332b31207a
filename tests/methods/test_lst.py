"""LST against its steps written as loops, and a toy where unlabeled images help."""

from fractions import Fraction

import pytest
import torch
from episode_batches import batch_of
from torch.nn import functional

from epcore.backbones.build import build_backbone
from epcore.methods import build_method
from epcore.methods.base import Pretrained

WAY, SHOT, EACH, UNLABELED = 3, 2, 4, 7
QUERIES, LABELED, SIZE = WAY * EACH, WAY * SHOT, 8
SUPPORT_CLASSES = torch.arange(WAY).repeat_interleave(SHOT)
QUERY_CLASSES = torch.arange(WAY).repeat_interleave(EACH)
FEW = {
    "steps": 6, "rounds": 2, "per_class": 2, "label_steps": 2, "joint_steps": 2, "round_steps": 4,
    "training_steps": 5, "training_joint_steps": 2, "inner_rate": 0.5,
}  # fmt: skip


def build(name="lst", way=WAY, **options):
    """In float64, in eval mode, with relations that differ."""
    torch.manual_seed(0)
    start = Pretrained(build_backbone("conv4", Fraction(1, 8)), torch.empty(0, SIZE))
    method = build_method({"name": name, **options}, 28, way, "here", start).double().eval()
    if name == "lst":
        torch.nn.init.normal_(method.relation[-1].weight, std=5)
    return method


def episodes_of(unlabeled=UNLABELED, count=2):
    torch.manual_seed(1)
    points = torch.rand(count, LABELED + QUERIES + unlabeled, SIZE).double()
    return batch_of(points, WAY, SHOT, QUERIES)


# -- one episode, image by image -------------------------------------------------------------------


def start_of(method):
    return method.head.weight, method.head.bias


def descended(method, layer, images, steps):
    """Steps on `(feature, class, weights of its logits)`, differentiable."""
    weight, bias = layer
    for _ in range(steps):
        losses = [
            functional.cross_entropy(weights * (weight @ feature + bias), label)
            for feature, label, weights in images
        ]
        loss = torch.stack(losses).sum() / LABELED
        slopes = torch.autograd.grad(loss, (weight, bias), create_graph=True)
        rate = method.options.inner_rate
        weight, bias = weight - rate * slopes[0], bias - rate * slopes[1]
    return weight, bias


def support_of(points):
    one = torch.ones(WAY, dtype=points.dtype)
    return [(points[i], SUPPORT_CLASSES[i], one) for i in range(LABELED)]


def labeled(method, points, layer, kept):
    """The `kept` surest unlabeled images of each class."""
    weight, bias = layer
    sure, means = {}, points[:LABELED].reshape(WAY, SHOT, SIZE).mean(dim=1)
    for place in range(LABELED + QUERIES, len(points)):
        probabilities = (weight @ points[place] + bias).softmax(dim=0)
        label = int(probabilities.argmax())
        sure.setdefault(label, []).append((probabilities[label].item(), place))
    images = []
    for label, candidates in sure.items():
        for _, place in sorted(candidates, reverse=True)[:kept]:
            pairs = torch.stack([torch.cat([points[place], mean]) for mean in means])
            weights = method.relation(pairs)[:, 0].softmax(dim=0)
            images.append((points[place], torch.tensor(label), weights))
    return images


def layer_after_all_rounds(method, points):
    options, support, start = method.options, support_of(points), start_of(method)
    layer = descended(method, start, support, options.label_steps)
    for steps in [options.round_steps] * (options.rounds - 1) + [options.steps]:
        both = support + labeled(method, points, layer, options.per_class)
        layer = descended(method, start, both, options.joint_steps)
        layer = descended(method, layer, support, steps - options.joint_steps)
    return layer


def test_scores_are_those_of_the_rounds_written_out():
    method, episodes = build(**FEW), episodes_of()
    for points, logits in zip(episodes.points, method.scores(episodes), strict=True):
        weight, bias = layer_after_all_rounds(method, points)
        expected = points[LABELED:][:QUERIES] @ weight.T + bias
        torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize("name", FEW)
def test_every_setting_matters(name):
    """Those of training to the loss, the others to the scores."""
    method, changed = build(**FEW), build(**FEW | {name: FEW[name] + 1})
    episodes = episodes_of()
    of_training = name.startswith("training")
    found, other = (
        each.loss(episodes) if of_training else each.scores(episodes) for each in (method, changed)
    )
    assert (found - other).abs().max() > 1e-6


def test_without_unlabeled_images_a_test_is_that_of_mtl():
    method, episodes = build(**FEW), episodes_of(unlabeled=0)
    mtl = build("mtl", steps=FEW["steps"], inner_rate=FEW["inner_rate"])
    mtl.head.load_state_dict(method.head.state_dict())
    torch.testing.assert_close(method.scores(episodes), mtl.scores(episodes))
    assert not torch.allclose(method.scores(episodes_of())[:, :, 0], mtl.scores(episodes)[:, :, 0])


def test_each_part_learns_from_the_loss_that_it_has_in_the_authors_code():
    """Through the steps. The losses are of the queries, after the steps on both and after all."""
    method, options = build(**FEW), FEW
    episodes = episodes_of(count=1)
    points = episodes.points.clone().requires_grad_()
    loss = method.loss(batch_of(points, WAY, SHOT, QUERIES))
    loss.backward()

    own = episodes.points[0].clone().requires_grad_()
    fixed = own.detach()
    support, start = support_of(fixed), start_of(method)
    layer = descended(method, start, support, options["label_steps"])
    unlabeled = labeled(method, fixed, layer, UNLABELED)
    both, queries = support + unlabeled, slice(LABELED, LABELED + QUERIES)
    weight, bias = descended(method, start, both, options["training_joint_steps"])
    first = functional.cross_entropy(fixed[queries] @ weight.T + bias, QUERY_CLASSES)
    rest = options["training_steps"] - options["training_joint_steps"]
    weight, bias = descended(method, (weight, bias), support, rest)
    last = functional.cross_entropy(own[queries] @ weight.T + bias, QUERY_CLASSES)

    torch.testing.assert_close(loss, first + last)
    relation = list(method.relation.parameters())
    for parameter, expected in zip(
        relation, torch.autograd.grad(first, relation, retain_graph=True), strict=True
    ):
        torch.testing.assert_close(parameter.grad, expected)
    assert max(parameter.grad.abs().max() for parameter in relation) > 1e-6
    of_start = torch.autograd.grad(last, (method.head.weight, method.head.bias, own))
    torch.testing.assert_close(method.head.weight.grad, of_start[0])
    torch.testing.assert_close(method.head.bias.grad, of_start[1])
    torch.testing.assert_close(points.grad[0, queries], of_start[2][queries])
    assert not points.grad[0, :LABELED].any()
    assert not points.grad[0, LABELED + QUERIES :].any()


# -- a toy -----------------------------------------------------------------------------------------


def accuracy(shuffled=False, wrong=False, of_each=20):
    """Of one labeled image of each of three classes, in episodes of Gaussian clouds.

    shuffled: queries are of any class. wrong: unlabeled images are of no class.
    """
    method = build()
    torch.nn.init.zeros_(method.head.weight)
    torch.nn.init.zeros_(method.relation[-1].weight)
    random = torch.Generator().manual_seed(3)

    def normal(*shape):
        return torch.randn(*shape, generator=random).double()

    means = 1.5 * normal(200, WAY, 1, SIZE)
    support = means + normal(200, WAY, 1, SIZE)
    queries = means + normal(200, WAY, EACH, SIZE)
    others = (0 if wrong else means) + normal(200, WAY, of_each, SIZE)
    points = torch.cat([part.flatten(1, 2) for part in (support, queries, others)], dim=1)
    with torch.no_grad():
        guesses = method.scores(batch_of(points, WAY, 1, QUERIES)).argmax(dim=-1)
    classes = QUERY_CLASSES.expand(200, -1)
    if shuffled:
        classes = torch.randint(WAY, classes.shape, generator=random)
    return (guesses == classes).double().mean().item()


def test_unlabeled_images_help_beyond_the_support_and_none_of_other_classes():
    alone = accuracy(of_each=0)
    assert accuracy() > alone + 0.03
    assert accuracy(wrong=True) < alone
    assert abs(accuracy(shuffled=True) - 1 / WAY) < 0.05
