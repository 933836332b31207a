"""What all compared methods have in common, and each against its formula written as loops."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from episode_batches import batch_of
from narrow_methods import NARROW, TRAINED
from plans import plan_of
from scipy.optimize import minimize
from scipy.stats import kurtosis, skew
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from epcore.backbones import checkpoint
from epcore.backbones.base import parameter_count
from epcore.backbones.build import build_backbone
from epcore.errors import UserError
from epcore.methods import METHODS, build_method
from epcore.methods._resnet12 import DropBlock
from epcore.methods.base import Pretrained
from epcore.methods.egnn import initial_edges, updated_edges
from epcore.methods.mtl import ScaledConvolution
from epcore.methods.tadam import auxiliary_share

WAY, SHOT, EACH = 5, 2, 3
BASE = 12  # base classes
QUERIES = WAY * EACH
# A last layer with an output for each class treats classes by their numbers.
NUMBERED = ("gnn", "lst", "maml", "mtl")


def build(name, pixels=28, **options):
    narrow = NARROW.get(name, {}) if pixels == 28 else {}
    start = None
    if METHODS[name].pretrained:
        start = Pretrained(build_backbone("conv4", Fraction(1, 8)), torch.randn(BASE, 8), 7)
    return build_method({"name": name, **narrow, **options}, pixels, WAY, "here", start)


def exact(name, pixels=28, **options):
    """In float64 and as in a test."""
    return build(name, pixels, **options).double().eval()


def episodes_of(method, count=2, shot=SHOT, unlabeled=0, pixels=28):
    images = torch.rand(count * (WAY * shot + QUERIES + unlabeled), 3, pixels, pixels).double()
    with torch.no_grad():
        points = method.embed(images.to(next(method.parameters()).dtype))
    return batch_of(points.reshape(count, -1, points.shape[-1]), WAY, shot, QUERIES)


def changed(episodes, points):
    return batch_of(points, episodes.way, episodes.shot, episodes.queries)


def scores(method, episodes):
    with torch.no_grad():
        return method.scores(episodes)


# -- all methods -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRAINED)
def test_scores_have_a_column_for_each_class_and_training_reaches_every_weight(name):
    method = build(name)
    count = WAY * SHOT + QUERIES + 4 * method.unlabeled
    points = method.embed(torch.rand(2 * count, 3, 28, 28)).reshape(2, count, -1)
    episodes = batch_of(points, WAY, SHOT, QUERIES)
    loss = method.loss(episodes)
    loss.backward()
    assert loss.shape == ()
    idle = [
        name
        for name, weight in method.named_parameters()
        if weight.requires_grad and weight.grad is None
    ]
    assert not idle
    assert scores(method, episodes).shape == (2, QUERIES, WAY)


def points_by_position(method, images, groups):
    """Points of images `(T, N, 3, h, w)`; the images of each group of positions are one batch."""
    points = [None] * images.shape[1]
    for group in groups:
        batch = torch.stack([images[t, n] for t in range(len(images)) for n in group])
        found = method.embed(batch).reshape(len(images), len(group), -1)
        for place, position in enumerate(group):
            points[position] = found[:, place]
    return torch.stack(points, dim=1)


QUERY_GROUPS = {
    "gnn": [range(WAY, WAY + QUERIES)],
    "egnn": [[position] for position in range(WAY, WAY + QUERIES)],
}
APART = ("lst", "metaoptnet", "mtl", "protonets-plus-plus")  # support and queries are a batch each


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_batchnorm_in_training_sees_the_images_that_the_authors_code_gives_it(name):
    """By the gradient of the first convolution: of GNN and EGNN a position is a batch."""
    images = torch.rand(4, WAY + QUERIES, 3, 28, 28, dtype=torch.float64)
    groups = [range(WAY + QUERIES)]
    if name in QUERY_GROUPS:
        groups = [*([position] for position in range(WAY)), *QUERY_GROUPS[name]]
    elif name in APART:
        groups = [range(WAY), range(WAY, WAY + QUERIES)]
    gradients = []
    for encode in (
        lambda method: method.embed_step(images, WAY),
        lambda method: points_by_position(method, images, groups),
    ):
        torch.manual_seed(0)
        method = build(name).double().train()
        for module in method.modules():
            if isinstance(module, torch.nn.Dropout | torch.nn.Dropout2d | DropBlock):
                module.eval()  # other masks for other batches
        method.loss(batch_of(encode(method), WAY, 1, QUERIES)).backward()
        first = next(weight for weight in method.parameters() if weight.requires_grad)
        gradients.append(first.grad)
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-10)


class AsOnCuda(TorchFunctionMode):
    """Autocast on the CPU that refuses what CUDA's does."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is functional.binary_cross_entropy and torch.is_autocast_enabled("cpu"):
            raise RuntimeError("unsafe to autocast")
        return function(*args, **(kwargs or {}))


def test_autocast_of_cuda_refuses_no_loss():
    """EGNN's is the binary cross-entropy."""
    method = build("egnn")
    points = method.embed(torch.rand(2 * (WAY + QUERIES), 3, 28, 28))
    episodes = batch_of(points.reshape(2, WAY + QUERIES, -1), WAY, 1, QUERIES)
    with AsOnCuda(), torch.autocast("cpu", dtype=torch.bfloat16):
        loss = method.loss(episodes)
    assert loss.dtype == torch.float32
    loss.backward()


@pytest.mark.parametrize("name", TRAINED)
def test_an_episode_is_classified_as_it_is_alone(name):
    method = exact(name)
    episodes = episodes_of(method, count=3)
    alone = torch.cat([scores(method, changed(episodes, each[None])) for each in episodes.points])
    assert torch.allclose(scores(method, episodes), alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", TRAINED)
def test_the_order_of_queries_means_nothing(name):
    method = exact(name)
    episodes = episodes_of(method)
    order = torch.randperm(QUERIES)
    points = episodes.points.clone()
    points[:, WAY * SHOT :] = points[:, WAY * SHOT :][:, order]
    found = scores(method, changed(episodes, points))
    assert torch.allclose(found, scores(method, episodes)[:, order], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in TRAINED if name not in NUMBERED])
def test_classes_have_no_numbers(name):
    method = exact(name)
    episodes = episodes_of(method)
    order = torch.randperm(WAY)
    places = (order[:, None] * SHOT + torch.arange(SHOT)).flatten()
    points = episodes.points.clone()
    points[:, : WAY * SHOT] = points[:, places]
    found = scores(method, changed(episodes, points))
    assert torch.allclose(found, scores(method, episodes)[..., order], rtol=1e-8, atol=1e-10)


INDUCTIVE = [
    *(("protonet", {}), ("matching", {}), ("relation-net", {}), ("gnn", {})),
    *(("maml", {}), ("egnn", {"transductive": False}), ("protonets-plus-plus", {})),
    *(("metaoptnet", {"head": "svm"}), ("metaoptnet", {"head": "ridge"})),
    ("can", {"transductive": False}),
]


@pytest.mark.parametrize(("name", "options"), INDUCTIVE)
def test_a_query_is_classified_by_itself(name, options):
    method = exact(name, **options)
    assert not method.transductive
    episodes = episodes_of(method)
    points = episodes.points.clone()
    points[:, -1] = points[:, -2]
    found = scores(method, changed(episodes, points))[:, :-1]
    assert torch.allclose(found, scores(method, episodes)[:, :-1], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("tpn", {}), ("tpn-resnet12", {}), ("egnn", {}), ("can", {})),
        ("maml", {"statistics": "batch"}),
    ],
)
def test_a_transductive_method_looks_at_the_other_queries(name, options):
    method = exact(name, **options)
    assert method.transductive
    episodes = episodes_of(method)
    points = episodes.points.clone()
    points[:, -1] = points[:, -2]
    found = scores(method, changed(episodes, points))[:, :-1]
    assert not torch.allclose(found, scores(method, episodes)[:, :-1], rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", [name for name in TRAINED if build(name).unlabeled])
def test_unlabeled_images_take_part(name):
    method = exact(name)
    episodes = episodes_of(method, unlabeled=4)
    found = scores(method, episodes)
    assert found.shape == (2, QUERIES, WAY)
    without = changed(episodes, episodes.points[:, : WAY * SHOT + QUERIES])
    assert not torch.allclose(found, scores(method, without), rtol=1e-12, atol=0)


def test_an_option_that_it_does_not_have_is_told():
    with pytest.raises(UserError, match="colour"):
        build("protonet", colour=1)


@pytest.mark.parametrize("name", ["relation-net", "tpn", "gnn", "egnn", "maml", "metaoptnet"])
def test_images_that_are_too_small_are_told(name):
    with pytest.raises(UserError, match="8 pixels are too small"):
        build(name, pixels=8)


@pytest.mark.parametrize(("pixels", "square"), [(84, 5), (32, 2), (28, 1)])
def test_metaoptnets_dropped_squares_are_no_larger_than_the_last_map(pixels, square):
    """5 for mini-ImageNet and 2 for CIFAR are its authors'."""
    blocks = [m for m in build("metaoptnet", pixels=pixels).modules() if isinstance(m, DropBlock)]
    assert {block.side for block in blocks} == {square}


# -- numbers of parameters at 84 pixels, by hand ---------------------------------------------------


def linear(inputs, outputs):
    return inputs * outputs + outputs


def convolutions(*channels):
    """Parameters of 3x3 convolutions without bias, each with BatchNorm's gain and shift."""
    return sum(9 * a * b + 2 * b for a, b in itertools.pairwise(channels))


def perceptron(*widths, bias):
    """Each layer with BatchNorm; `bias` is 1 or 0."""
    return sum(a * b + (bias + 2) * b for a, b in itertools.pairwise(widths))


def pairs(features, bias):
    return perceptron(features, 192, 192, 96, 96, bias=bias) + linear(96, 1)


def residual(*channels):
    """Blocks of three 3x3 convolutions beside a 1x1 one, each with BatchNorm."""
    return sum(
        convolutions(a, b, b, b) + a * b + 2 * b for a, b in itertools.pairwise((3, *channels))
    )


CONV4 = convolutions(3, 64, 64, 64, 64)
TADAM = residual(64, 128, 256, 512)
GRAPH_ENCODER = convolutions(3, 64, 96, 128, 256) + linear(256 * 5 * 5, 128) + 2 * 128
PARAMETERS = {
    "protonet": CONV4,
    "masked-k-means": CONV4 + linear(5, 20) + linear(20, 2),
    "matching": CONV4 + 1,
    # A bias and a shift where others have a gain and a shift; the flattened maps of 5x5.
    "maml": convolutions(3, 32, 32, 32, 32) + linear(32 * 5 * 5, WAY),
    "relation-net": CONV4 + convolutions(128, 64, 64) + linear(64 * 3 * 3, 8) + linear(8, 1),
    # The network of the width has biases too: 5x5 pools to 3x3, and that to 2x2.
    "tpn": CONV4 + convolutions(64, 64, 1) + 64 + 1 + linear(2 * 2, 8) + linear(8, 1),
    # Maps of 6x6.
    "can": convolutions(3, 64)
    + sum(
        convolutions(a, b, b, b) + a * b + 2 * b
        for a, b in itertools.pairwise((64, 64, 128, 256, 512))
    )
    + (linear(36, 6) + 2 * 6 + linear(6, 36)),
    "protonets-plus-plus": TADAM,
    # Two networks for each convolution, and the strength of each.
    # Of Conv-4 with 8 channels: its layers have no biases, and there are two kinds of rates.
    "leo": 8 * 64 + 2 * 128 * 128 + 128 * 64 + 64 * 8 + 64 + 8,
    # Of Conv-4 with 8 channels: a ninth of the weights, and BatchNorm.
    "mtl": 3 * 8 + 3 * 8 * 8 + 4 * 2 * 8 + linear(8, WAY),
    # MTL's, and those of a network of a feature's and a class mean's 8 numbers each.
    "lst": 3 * 8
    + 3 * 8 * 8
    + 4 * 2 * 8
    + linear(8, WAY)
    + (linear(2 * 8, 64) + 2 * 64 + linear(64, 8) + linear(8, 1)),
    # Of 8 features: nodes have 8, then 32 numbers, messages 24; all layers but one have BatchNorm.
    "wdae-gnn": linear(8, 24) + 32 * 24 + linear(32, 24) + 3 * 2 * 24 + linear(8 + 48, 16) + 1,
    # 20 ResNet-18 without a head: torchvision's has 11,689,512 with one of 1000 classes.
    "robust": 20 * (11_689_512 - linear(512, 1000)),
    "tadam": TADAM
    + sum(3 * 2 * (linear(512, n) + 2 * linear(n, n) + 1) for n in (64, 128, 256, 512)),
    "metaoptnet": residual(64, 160, 320, 640) + 1,
    # Maps of 11x11 pool to 6x6, and those to 4x4.
    "tpn-resnet12": TADAM + convolutions(512, 64, 1) + 64 + 1 + linear(4 * 4, 8) + linear(8, 1),
    # A node has 128 features and its class; each hidden layer adds 48, and BatchNorm.
    "gnn": GRAPH_ENCODER
    + sum(pairs(size, bias=1) + linear(2 * size, 48) + 2 * 48 for size in (133, 181))
    + (pairs(229, bias=1) + linear(2 * 229, WAY)),
    # A round takes a node and its like and unlike neighbors.
    "egnn": GRAPH_ENCODER
    + sum(perceptron(3 * size, 192, 96, bias=0) + pairs(96, bias=0) for size in (128, 96, 96)),
}
WITHOUT = {"relation-net": 6 * 64, "tpn": 4 * 64}  # biases that BatchNorm takes away
OFFICIAL = {"maml": 32_773, "gnn": 1_619_194, "relation-net": 228_689, "tpn": 150_772}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_method_has_the_parameters_of_its_layers(name):
    method = build(name, pixels=84)
    assert parameter_count(method) == PARAMETERS[name]


@pytest.mark.parametrize(
    ("name", "printed"),
    [("protonets-plus-plus", 7989), ("tadam", 7989), ("metaoptnet", 12415), ("tpn-resnet12", 8284)],
)
def test_the_weights_of_convolutions_are_as_many_as_the_paper_prints_in_thousands(name, printed):
    weights = [w for w in build(name, pixels=84).parameters() if w.dim() == 4]
    assert abs(sum(w.numel() for w in weights) / 1000 - printed) < 1


@pytest.mark.parametrize("name", OFFICIAL)
def test_it_has_those_of_the_official_code_but_for_biases_before_batch_norm(name):
    assert PARAMETERS[name] + WITHOUT.get(name, 0) == OFFICIAL[name]


# -- what layers are told, and first weights -------------------------------------------------------


GRAPH_LAYERS = [
    *[("LeakyReLU", 0.2)] * 3, ("Dropout2d", 0.4), ("LeakyReLU", 0.2), ("Dropout2d", 0.5)
]  # fmt: skip
ACTIVATIONS = {
    "protonet": [("ReLU", None)] * 4,
    "masked-k-means": [("ReLU", None)] * 4,
    "matching": [("ReLU", None)] * 4,
    "maml": [],  # written as functions
    "relation-net": [("ReLU", None)] * (4 + 3),
    "tpn": [("ReLU", None)] * (4 + 3),
    "tpn-resnet12": [("SiLU", None)] * 4 * 3 + [("ReLU", None)] * 3,
    "can": [("ReLU", None)] * (1 + 4 * 3 + 1),
    "protonets-plus-plus": [("SiLU", None)] * 4 * 3,
    "leo": [("ReLU", None)] * (4 + 2),
    "wdae-gnn": [("ReLU", None)] * 4 + [("Dropout", 0.7), ("LeakyReLU", 0.01)] * 3,
    "mtl": [("ReLU", None)] * 4,  # of the Conv-4 that it starts from here
    "lst": [("ReLU", None)] * 4 + [("LeakyReLU", 0.1)] * 2,
    "robust": [("ReLU", None)] * 2 * (1 + 8),  # a block has one, which it uses twice
    "tadam": [("SiLU", None)] * 4 * 3,  # those of the conditions are written as functions
    "metaoptnet": ([("LeakyReLU", 0.1)] * 3 + [("Dropout", 0.1)]) * 2 + [("LeakyReLU", 0.1)] * 6,
    # Four layers of pairs in each of three rounds, and EGNN's two of nodes.
    "gnn": GRAPH_LAYERS + [("LeakyReLU", 0.01)] * 3 * 4,
    "egnn": GRAPH_LAYERS + [("LeakyReLU", 0.01)] * 3 * (2 + 4),
}


@pytest.mark.parametrize("name", TRAINED)
def test_layers_have_the_slopes_and_the_dropout_of_the_authors_code(name):
    found = []
    for layer in build(name).modules():
        kind = type(layer).__name__
        if kind.endswith("LU") or kind.startswith("Dropout"):
            found.append((kind, getattr(layer, "negative_slope", getattr(layer, "p", None))))
    assert found == ACTIVATIONS[name]


def drawn_alike(weight, spread, normal):
    """Whether weights look drawn from a normal or a uniform distribution around 0."""
    widest = float(weight.detach().abs().max()) / spread
    bell = widest > 2.5 if normal else 1.6 < widest < math.sqrt(3) + 1e-6
    return bell and weight.std().item() == pytest.approx(spread, rel=0.1)


def test_relation_nets_first_weights_are_those_of_the_authors_code():
    method = build("relation-net", pixels=84)
    for layer in method.modules():
        if isinstance(layer, torch.nn.Conv2d):
            assert drawn_alike(layer.weight, math.sqrt(2 / (9 * 64)), normal=True)
    first = method.relation[-2]
    assert drawn_alike(first.weight, 0.01, normal=True)
    assert method.last.weight.abs().max() < 0.05
    assert all((layer.bias == 1).all() for layer in (first, method.last))


def test_mamls_first_weights_are_those_of_the_authors_code():
    """Xavier's uniform ones, and zeros for all that is added."""
    for name, weight in build("maml", pixels=84).named_parameters():
        if name.endswith("bias"):
            assert not weight.any(), name
        else:
            fans = (weight.shape[0] + weight.shape[1]) * (9 if weight.dim() == 4 else 1)
            assert drawn_alike(weight, math.sqrt(2 / fans), normal=False), name


def test_tpns_width_starts_around_one():
    assert build("tpn").width[-1].bias.tolist() == [1]


def test_tpn_propagates_with_the_alpha_of_the_authors_code():
    assert plan_of("paper").registry.recipes.compared_method("tpn").method["alpha"] == 0.99


# -- each by itself --------------------------------------------------------------------------------


def test_protonet_by_loops():
    method = exact("protonet")
    episodes = episodes_of(method)
    found = scores(method, episodes).numpy()
    for points, logits in zip(episodes.points.numpy(), found, strict=True):
        for query, k in itertools.product(range(QUERIES), range(WAY)):
            mean = sum(points[k * SHOT + i] for i in range(SHOT)) / SHOT
            distance = sum(
                (a - b) ** 2 for a, b in zip(points[WAY * SHOT + query], mean, strict=True)
            )
            assert logits[query, k] == pytest.approx(-distance, rel=1e-9)


@pytest.mark.parametrize("mask_power", [1, 2])
def test_masked_k_means_by_loops(mask_power):
    method = exact("masked-k-means", mask_power=mask_power)
    for layer in (method.border[0], method.border[2]):
        torch.nn.init.normal_(layer.weight)
        torch.nn.init.normal_(layer.bias)
    episodes = episodes_of(method, unlabeled=6)
    episodes = changed(episodes, 3 * episodes.points)
    found = scores(method, episodes).numpy()
    first, last = ([p.detach().numpy() for p in layer.parameters()] for layer in method.border[::2])
    for points, logits in zip(episodes.points.numpy(), found, strict=True):
        support, queries = points[: WAY * SHOT], points[WAY * SHOT : WAY * SHOT + QUERIES]
        others = points[WAY * SHOT + QUERIES :]
        means = [support[k * SHOT : (k + 1) * SHOT].mean(axis=0) for k in range(WAY)]
        distances = np.array([[np.sum((x - mean) ** 2) for mean in means] for x in others])
        refined = []
        for k in range(WAY):
            d = distances[:, k] / distances[:, k].mean()
            shape = [d.min(), d.max(), d.var(), skew(d), kurtosis(d)]
            output = last[0] @ np.tanh(first[0] @ shape + first[1]) + last[1]
            beta, gamma = np.exp(output)
            masks = 1 / (1 + np.exp(-(beta - d) * gamma))
            shares = np.exp(-distances[:, k]) / np.exp(-distances).sum(axis=1)
            weights = shares * masks**mask_power
            total = SHOT * means[k] + sum(w * x for w, x in zip(weights, others, strict=True))
            refined.append(total / (SHOT + weights.sum()))
        expected = [[-np.sum((query - mean) ** 2) for mean in refined] for query in queries]
        assert logits == pytest.approx(np.array(expected), rel=1e-6)


def test_masked_k_means_without_unlabeled_images_are_prototypes():
    method, plain = exact("masked-k-means"), exact("protonet")
    plain.backbone.load_state_dict(method.backbone.state_dict())
    episodes = episodes_of(method)
    torch.testing.assert_close(scores(method, episodes), scores(plain, episodes))


def test_what_masks_learn_from_distances_does_not_reach_the_features():
    """As in the authors' code; the mask itself and the class means do."""
    method = exact("masked-k-means")
    episodes = episodes_of(method, unlabeled=6)
    has_gradient = []
    method.border.register_forward_pre_hook(
        lambda _, inputs: has_gradient.append(inputs[0].requires_grad)
    )
    method.scores(changed(episodes, episodes.points.requires_grad_())).sum().backward()
    assert has_gradient == [False]
    assert (episodes.points.grad[:, -6:].abs().sum(dim=-1) > 0).all()


def test_protonets_plus_plus_by_loops():
    method = exact("protonets-plus-plus")
    episodes = episodes_of(method)
    found = scores(method, episodes).numpy()
    for points, logits in zip(episodes.points.numpy(), found, strict=True):
        for query, k in itertools.product(range(QUERIES), range(WAY)):
            mean = points[k * SHOT : (k + 1) * SHOT].mean(axis=0)
            distance = np.linalg.norm(points[WAY * SHOT + query] - mean)
            assert logits[query, k] == pytest.approx(-distance, rel=1e-6)


def descent(method, support, start, steps):
    """A linear layer after steps on the mean cross-entropy of the support, by autograd."""
    labels = torch.arange(WAY).repeat_interleave(SHOT)
    weight, bias = (part.clone().requires_grad_() for part in start)
    for _ in range(steps):
        loss = functional.cross_entropy(support @ weight.T + bias, labels)
        slopes = torch.autograd.grad(loss, (weight, bias))
        weight, bias = (
            (part - method.options.inner_rate * slope).detach().requires_grad_()
            for part, slope in zip((weight, bias), slopes, strict=True)
        )
    return weight.detach(), bias.detach()


def test_mtl_descends_on_the_support():
    method = exact("mtl", steps=3, inner_rate=0.5)
    episodes = episodes_of(method)
    found = scores(method, episodes)
    for points, logits in zip(episodes.points, found, strict=True):
        start = (method.head.weight.detach(), method.head.bias.detach())
        weight, bias = descent(method, points[: WAY * SHOT], start, 3)
        expected = points[WAY * SHOT : WAY * SHOT + QUERIES] @ weight.T + bias
        torch.testing.assert_close(logits, expected)


def test_mtls_steps_are_constants_to_its_training():
    """The gradient at the layer's start is that at its end; the support's features have none."""
    method = exact("mtl", steps=3, inner_rate=0.5).train()
    episodes = episodes_of(method, count=1)
    points = episodes.points.clone().requires_grad_()
    method.loss(changed(episodes, points)).backward()
    assert not points.grad[:, : WAY * SHOT].any()
    start = (method.head.weight.detach(), method.head.bias.detach())
    end = descent(method, episodes.points[0, : WAY * SHOT], start, 3)
    weight, bias = (part.requires_grad_() for part in end)
    labels = torch.arange(WAY).repeat_interleave(EACH)
    functional.cross_entropy(episodes.query[0] @ weight.T + bias, labels).backward()
    torch.testing.assert_close(method.head.weight.grad, weight.grad)
    torch.testing.assert_close(method.head.bias.grad, bias.grad)


def test_mtl_scales_the_convolutions_of_its_network_which_at_first_is_the_pretrained_one():
    start = Pretrained(build_backbone("conv4", Fraction(1, 8)).double().eval(), torch.empty(0, 8))
    images = torch.rand(4, 3, 28, 28).double()
    with torch.no_grad():
        before = start.backbone(images)
    method = build_method({"name": "mtl"}, 28, WAY, "here", start).double().eval()
    with torch.no_grad():
        torch.testing.assert_close(method.embed(images), before)
    layers = [layer for layer in method.modules() if isinstance(layer, ScaledConvolution)]
    assert len(layers) == 4
    assert all(layer.shifts is None for layer in layers)  # these convolutions have no bias


def test_a_scaled_convolution_channel_by_channel():
    convolution = torch.nn.Conv2d(3, 4, 3, padding=1).double()
    layer, maps = ScaledConvolution(convolution), torch.rand(2, 3, 6, 6).double()
    assert {name for name, weight in layer.named_parameters() if weight.requires_grad} == {
        "factors", "shifts",
    }  # fmt: skip
    torch.nn.init.normal_(layer.factors)
    torch.nn.init.normal_(layer.shifts)
    with torch.no_grad():
        result = layer(maps)
        for out in range(4):
            channel = sum(
                layer.factors[out, c]
                * functional.conv2d(maps[:, [c]], convolution.weight[out : out + 1, [c]], padding=1)
                for c in range(3)
            )
            shift = convolution.bias[out] + layer.shifts[out]
            torch.testing.assert_close(result[:, [out]], channel + shift)


def leo_decoded(method, latents, support):
    """Weights of each latent vector, and the sum of the support's cross-entropies with them."""
    weights = [[method.decoder.weight @ z for z in of_class] for of_class in latents]
    return weights, leo_loss(weights, support)


def leo_scores(weights, x):
    """Each weight of a class gives a score, and the class the mean of them."""
    return torch.stack([sum(w @ x for w in of_class) / len(of_class) for of_class in weights])


def leo_loss(weights, support):
    losses = [
        -leo_scores(weights, x).log_softmax(dim=0)[number // SHOT]
        for number, x in enumerate(support)
    ]
    return sum(losses)


def leo_step(values, loss, rates):
    """Each vector of each class goes down its own slope."""
    vectors = [vector for of_class in values for vector in of_class]
    slopes = torch.autograd.grad(loss, vectors)
    lower = [
        (vector - rates * slope).detach().requires_grad_()
        for vector, slope in zip(vectors, slopes, strict=True)
    ]
    return [lower[k * SHOT : (k + 1) * SHOT] for k in range(WAY)]


def test_leo_by_loops_over_pairs_classes_and_steps():
    """As in the authors' code, where each image of a class has a latent vector and weights."""
    method = exact("leo", latents=6, latent_steps=2, weight_steps=3, weight_rate=0.5)
    torch.nn.init.uniform_(method.latent_rates)
    torch.nn.init.uniform_(method.weight_rates)
    episodes = episodes_of(method)
    found = scores(method, episodes)
    for points, logits in zip(episodes.points, found, strict=True):
        support = points[: WAY * SHOT]
        codes = [method.encoder.weight @ x for x in support]
        relations = []
        for code in codes:
            pairs = [method.relation(torch.cat([code, second])) for second in codes]
            relations.append(sum(pairs) / len(pairs))
        latents = []
        for k in range(WAY):
            mean = sum(relations[k * SHOT : (k + 1) * SHOT]) / SHOT
            latents.append([mean.detach().clone().requires_grad_() for _ in range(SHOT)])
        weights, loss = leo_decoded(method, latents, support)
        for _ in range(2):
            latents = leo_step(latents, loss, method.latent_rates)
            weights, loss = leo_decoded(method, latents, support)
        for _ in range(3):
            weights = leo_step(weights, loss, method.weight_rates)
            loss = leo_loss(weights, support)
        for query, x in enumerate(points[WAY * SHOT : WAY * SHOT + QUERIES]):
            torch.testing.assert_close(logits[query], leo_scores(weights, x).detach())


@pytest.mark.parametrize(
    "name",
    ["encoder.weight", "relation.2.weight", "decoder.weight", "latent_rates", "weight_rates"],
)
def test_the_gradient_goes_through_leos_steps(name):
    """Without the penalty of what the steps change, whose end is a constant to it."""
    method = exact("leo", encoder_weight=0, weight_rate=0.1).train()
    episodes = episodes_of(method)

    def loss():
        torch.manual_seed(3)  # the same dropout
        return method.loss(episodes)

    loss().backward()
    found = dict(method.named_parameters())[name].grad.flatten()
    place = int(found.abs().argmax())
    weight = dict(method.named_parameters())[name].data.view(-1)
    values = []
    for step in (1e-6, -1e-6):
        weight[place] += step
        values.append(loss().item())
        weight[place] -= step
    assert found[place].item() == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4)


def test_leos_penalties_are_of_its_weights_and_of_the_directions_of_its_decoder():
    method = exact("leo", latents=6).train()
    episodes = episodes_of(method)

    def loss(**weights):
        names = ("encoder_weight", "l2_weight", "orthogonality_weight")
        method.options = method.options.model_copy(update=dict.fromkeys(names, 0) | weights)
        torch.manual_seed(3)
        return method.loss(episodes).item()

    layers = [method.encoder, *method.relation[::2], method.decoder]
    squares = sum(float((layer.weight.detach() ** 2).sum()) for layer in layers)
    assert loss(l2_weight=0.1) - loss() == pytest.approx(0.1 / 2 * squares, rel=1e-6)
    rows = method.decoder.weight.detach().numpy().T
    cosines = [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in rows] for a in rows]
    expected = np.mean((np.array(cosines) - np.eye(6)) ** 2)
    assert loss(orthogonality_weight=2) - loss() == pytest.approx(2 * expected, rel=1e-6)


@pytest.mark.parametrize("name", ["leo", "wdae-gnn"])
def test_the_network_below_is_frozen(name):
    method = build(name).double().train()
    before = {name: values.clone() for name, values in method.backbone.state_dict().items()}
    points = method.embed(torch.rand(40, 3, 28, 28).double())
    assert not points.requires_grad
    assert not any(weight.requires_grad for weight in method.backbone.parameters())
    assert all(torch.equal(values, before[name])
               for name, values in method.backbone.state_dict().items())  # fmt: skip


def test_features_of_leo_have_unit_length():
    points = exact("leo").embed(torch.rand(40, 3, 28, 28).double())
    torch.testing.assert_close(points.norm(dim=1), torch.ones(40).double())


def unit(values):
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def wdae_weights(method, base, classes):
    """Weights of base classes and of the classes with this support `(n, shot, D)`, and denoised."""
    stored = method.generator.base_weights.numpy()[base]
    first = unit(np.concatenate([stored, unit(classes.numpy()).mean(axis=1)]))
    with torch.no_grad():
        return first, method.generator.denoiser(torch.from_numpy(first)[None])[0].numpy()


@pytest.mark.parametrize("step", [1, 0.6])
def test_wdae_gnn_classifies_by_cosines_to_weights_that_are_denoised_beside_the_base(step):
    method = exact("wdae-gnn", step=step)
    episodes = episodes_of(method)
    for points, logits in zip(episodes.points, scores(method, episodes), strict=True):
        support = points[: WAY * SHOT].reshape(WAY, SHOT, -1)
        first, denoised = wdae_weights(method, range(BASE), support)
        weights = unit((1 - step) * first + step * unit(denoised))[BASE:]
        for query in range(QUERIES):
            expected = 7 * weights @ unit(points[WAY * SHOT + query].numpy())
            assert logits[query].numpy() == pytest.approx(expected, rel=1e-6)


def test_wdae_gnn_learns_from_queries_of_all_classes_and_from_weights_that_it_knows():
    """Two of five classes are taken out of the base; the weights of the others are base weights."""
    method = exact("wdae-gnn", reconstruction_weight=3)
    episodes = episodes_of(method)
    classes = torch.tensor([[8, 0, 3, 5, 2], [1, 11, 9, 0, 8]])
    losses, distances = [], []
    for points, own in zip(episodes.points, classes.tolist(), strict=True):
        nodes = [c for c in range(BASE) if c not in own[:2]] + own[:2]
        support = points[: 2 * SHOT].reshape(2, SHOT, -1)
        weights = unit(wdae_weights(method, nodes[:-2], support)[1])
        known = unit(method.generator.base_weights.numpy()[nodes])
        distances.append(((weights - known) ** 2).sum(axis=1).mean())
        for query in range(QUERIES):
            logits = 7 * weights @ unit(points[WAY * SHOT + query].numpy())
            own_logit = logits[nodes.index(own[query // EACH])]
            losses.append(np.log(np.exp(logits).sum()) - own_logit)
    expected = np.mean(losses) + 3 * np.mean(distances)
    assert method.loss_among_base(episodes, classes).item() == pytest.approx(expected, rel=1e-6)


def test_wdae_gnn_is_refused_without_enough_base_classes():
    start = Pretrained(build_backbone("conv4", Fraction(1, 8)), torch.empty(0, 8))
    with pytest.raises(UserError, match=r"wdae-gnn: the checkpoint .* has weights of 0 base"):
        build_method({"name": "wdae-gnn"}, 28, WAY, "here", start)


def features_of_members(method, points):
    """Features `(members, N, D)` of an episode's points."""
    count = method.options.members
    return np.stack(np.split(points.numpy(), count, axis=1))


def test_a_robust_ensemble_by_loops_over_its_members():
    method = exact("robust")
    episodes = episodes_of(method)
    found = scores(method, episodes).exp().numpy()
    for points, probabilities in zip(episodes.points, found, strict=True):
        members = features_of_members(method, points)
        for query in range(QUERIES):
            by_member = []
            for features in members:
                x = features[WAY * SHOT + query]
                means = [features[k * SHOT : (k + 1) * SHOT].mean(axis=0) for k in range(WAY)]
                cosines = [x @ m / np.linalg.norm(x) / np.linalg.norm(m) for m in means]
                powers = np.exp(20 * np.array(cosines))
                by_member.append(powers / powers.sum())
            assert probabilities[query] == pytest.approx(np.mean(by_member, axis=0), rel=1e-6)


def test_robusts_embedding_is_that_of_each_network_in_turn():
    method = exact("robust")
    images = torch.rand(3, 3, 28, 28).double()
    with torch.no_grad():
        expected = torch.cat([network(images) for network in method.members], dim=1)
        torch.testing.assert_close(method.embed(images), expected)
    assert not torch.equal(expected[:, : method.feature_size], expected[:, method.feature_size :])


def official_disagreement(probabilities, classes):
    """A pair of networks after another, of probabilities `(n, members, C)`."""
    kept = probabilities.copy()
    for image, label in enumerate(classes):
        kept[image, :, label] = 0
    total, pairs = 0.0, 0
    for one, other in itertools.combinations(range(probabilities.shape[1]), 2):
        p, q = kept[:, one], kept[:, other]
        total -= ((p * np.log(q + 1e-7) + q * np.log(p + 1e-7)) / 2).sum(axis=1).mean()
        pairs += 1
    return total / pairs


def test_the_loss_of_robust_is_of_all_images_and_all_base_classes():
    """In a test, where all members take part without dropout; each has a head of its own."""
    method = exact("robust", members=3, relation_weight=2)
    episodes = episodes_of(method, count=1)
    head, classes = (
        torch.nn.Linear(method.base_features, 9).double(),
        torch.tensor([[8, 0, 3, 5, 2]]),
    )
    own = classes[0, [*np.repeat(range(WAY), SHOT), *np.repeat(range(WAY), EACH)]].numpy()
    heads = np.split(head.weight.detach().numpy(), 3, axis=1)
    members = features_of_members(method, episodes.points[0])
    logits = np.stack(
        [f @ w.T + head.bias.detach().numpy() for f, w in zip(members, heads, strict=True)], axis=1
    )
    shares = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    of_classes = sum(-np.log(shares[range(len(own)), m, own]).mean() for m in range(3))
    expected = of_classes + 2 * official_disagreement(shares, own)
    found = method.joint_loss(episodes, head, classes).item()
    assert found == pytest.approx(expected, rel=1e-9)


def test_in_a_step_of_robust_seven_of_ten_members_take_part_and_never_none():
    method = build("robust", members=4).train()
    drawn = [set(method._trained_members().tolist()) for _ in range(400)]
    assert min(map(len, drawn)) == 1
    mean = sum(map(len, drawn)) / len(drawn)
    assert abs(mean - 4 * 0.7) < 4 * math.sqrt(4 * 0.7 * 0.3 / 400) + 0.3**4


def swish(values):
    return values / (1 + np.exp(-values))


def tadam_condition(network, task):
    """A network of three layers, of which the last two have shortcuts, times its strength."""
    first, second, third = (
        lambda x, layer=layer: layer.weight.detach().numpy() @ x + layer.bias.detach().numpy()
        for layer in (network.first, network.second, network.third)
    )
    values = swish(first(task))
    values = swish(second(values) + values)
    return network.strength.item() * (third(values) + values)


def tadam_features(method, images, factors, offsets):
    """Features of an episode's images, a convolution after another."""

    def normalized(part, maps):
        convolution, norm = part
        made = functional.conv2d(maps, convolution.weight, padding=convolution.padding)
        made = (made - norm.running_mean[:, None, None]) / (norm.running_var + norm.eps).sqrt()[
            :, None, None
        ]
        return made * norm.weight[:, None, None] + norm.bias[:, None, None]

    maps, number = images, 0
    for place, block in enumerate(method.encoder):
        values = maps
        for part in range(3):
            values = normalized(block.path[2 * part], values)
            values = values * factors[number][:, None, None] + offsets[number][:, None, None]
            if part < 2:
                values = values * values.sigmoid()
            number += 1
        values = values + normalized(block.shortcut, maps)
        maps = values * values.sigmoid()
        if place < 3:
            maps = functional.max_pool2d(maps, 2, ceil_mode=True)
    return maps.mean(dim=(2, 3))


def furnished_tadam():
    """In float64, as if trained: no strength is 0, and no statistics are those of the start."""
    method = exact("tadam")
    for name, values in method.state_dict().items():
        if name.endswith(("strength", "running_mean")):
            values.normal_(0, 0.3)
        elif name.endswith("running_var"):
            values.uniform_(0.5, 2)
    return method


def test_tadam_by_its_layers_one_by_one():
    method = furnished_tadam()
    episodes = episodes_of(method)
    found = scores(method, episodes).numpy()
    for points, logits in zip(episodes.points, found, strict=True):
        images = points.reshape(-1, 3, 28, 28)
        ones, zeros = [torch.ones(1)] * 12, [torch.zeros(1)] * 12
        with torch.no_grad():
            support = tadam_features(method, images[: WAY * SHOT], ones, zeros)
            means = [support[k * SHOT : (k + 1) * SHOT].mean(dim=0) for k in range(WAY)]
            task = (sum(means) / WAY).numpy()
            factors, offsets = (
                [torch.from_numpy(tadam_condition(network, task)) for network in networks]
                for networks in (method.factors, method.offsets)
            )
            factors = [1 + factor for factor in factors]
            features = tadam_features(method, images, factors, offsets).numpy()
        for query, k in itertools.product(range(QUERIES), range(WAY)):
            mean = features[k * SHOT : (k + 1) * SHOT].mean(axis=0)
            distance = np.linalg.norm(features[WAY * SHOT + query] - mean)
            assert logits[query, k] == pytest.approx(-7.5 * distance, rel=1e-6)


def test_tadam_without_conditions_has_the_distances_of_protonets_plus_plus():
    """As it begins. Support and queries are batches of their own in training."""
    method, plain = build("tadam").double().train(), build("protonets-plus-plus").double().train()
    plain.encoder.load_state_dict(method.encoder.state_dict())
    images = torch.rand(2, WAY * SHOT + QUERIES, 3, 28, 28).double()
    episodes = [
        batch_of(each.embed_step(images, WAY * SHOT), WAY, SHOT, QUERIES)
        for each in (method, plain)
    ]
    found, expected = scores(method, episodes[0]), 7.5 * scores(plain, episodes[1])
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-9)


def test_tadam_compares_in_float32_what_it_embeds_in_half_precision():
    """Distances in half precision have ties."""
    method = build("tadam").eval()
    episodes = episodes_of(method)
    points = episodes.points.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert scores(method, changed(episodes, points)).dtype == torch.float32


def test_tadams_strengths_are_kept_small():
    method = furnished_tadam()
    episodes = episodes_of(method)
    logits = scores(method, episodes)
    labels = torch.arange(WAY).repeat_interleave(EACH)
    of_queries = -torch.stack([each.log_softmax(dim=1)[range(QUERIES), labels] for each in logits])
    conditions = (*method.factors, *method.offsets)
    strengths = [condition.strength.item() for condition in conditions]
    expected = of_queries.mean().item() + sum(0.005 * strength**2 for strength in strengths)
    assert method.loss(episodes).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_tadam_trains_its_auxiliary_task_in_nine_of_ten_steps_at_first():
    """Queries among 9 base classes, by their features without conditions."""
    method = furnished_tadam()
    method.options = method.options.model_copy(update={"auxiliary_steps": 10**6})
    episodes = episodes_of(method, count=1)
    head, classes = (
        torch.nn.Linear(method.base_features, 9).double(),
        torch.tensor([[8, 0, 3, 5, 2]]),
    )
    with torch.no_grad():
        found = torch.stack([method.joint_loss(episodes, head, classes) for _ in range(100)])
        few_shot = method.loss(episodes)
        images = episodes.query[0].reshape(-1, 3, 28, 28)
        features = tadam_features(method, images, [torch.ones(1)] * 12, [torch.zeros(1)] * 12)
        logits = features @ head.weight.T + head.bias
    own = classes[0].repeat_interleave(EACH)
    among_all = -logits.log_softmax(dim=1)[range(QUERIES), own].mean()
    both = (found - few_shot - among_all).abs() < 1e-6
    assert torch.equal(both, (found - few_shot).abs() > 1e-6)
    assert abs(both.double().mean() - 0.9) < 4 * math.sqrt(0.9 * 0.1 / 100)


def test_tadams_auxiliary_task_becomes_rare_in_twenty_falls():
    shares = [auxiliary_share(step, 100) for step in (0, 4, 5, 99)]
    assert shares == pytest.approx([0.9, 0.9, 0.81, 0.9**20])


def official_svm(support, queries, cost, ridge):
    """Scores of Crammer and Singer's machine, whose dual a general solver finds."""
    count = len(support)
    labels = np.eye(WAY).repeat(SHOT, axis=0)
    kernel = support @ support.T + ridge * np.eye(count)

    def objective(flat):
        dual = flat.reshape(count, WAY)
        return np.trace(dual.T @ kernel @ dual) / 2 - (dual * labels).sum()

    def slope(flat):
        return (kernel @ flat.reshape(count, WAY) - labels).flatten()

    solved = minimize(
        objective,
        np.zeros(count * WAY),
        jac=slope,
        method="SLSQP",
        bounds=[(None, cost * bound) for bound in labels.flatten()],
        constraints={
            "type": "eq",
            "fun": lambda flat: flat.reshape(count, WAY).sum(axis=1),
            "jac": lambda _: np.kron(np.eye(count), np.ones(WAY)),
        },
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert solved.success, solved.message
    return queries @ support.T @ solved.x.reshape(count, WAY)


@pytest.mark.parametrize(("cost", "ridge"), [(0.1, 1.0), (0.5, 0.2)])
def test_metaoptnets_machine_by_a_general_solver(cost, ridge):
    method = exact("metaoptnet", cost=cost, kernel_ridge=ridge)
    torch.nn.init.constant_(method.scale, 3)
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(2, WAY * SHOT + QUERIES, 6)))
    found = scores(method, batch_of(points, WAY, SHOT, QUERIES)).numpy() / 3
    for episode, logits in zip(points.numpy(), found, strict=True):
        support, queries = episode[: WAY * SHOT], episode[WAY * SHOT :]
        assert logits == pytest.approx(official_svm(support, queries, cost, ridge), abs=1e-4)


def test_metaoptnets_ridge_regression_by_its_normal_equations():
    method = exact("metaoptnet", head="ridge", penalty=3.0)
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(1, WAY * SHOT + QUERIES, 6)))
    (found,) = scores(method, batch_of(points, WAY, SHOT, QUERIES)).numpy()
    support, queries = points[0, : WAY * SHOT].numpy(), points[0, WAY * SHOT :].numpy()
    labels = np.eye(WAY).repeat(SHOT, axis=0)
    weights = np.linalg.inv(support.T @ support + 3 * np.eye(6)) @ support.T @ labels
    assert found == pytest.approx(2 * queries @ weights, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("head", ["svm", "ridge"])
def test_the_gradient_goes_through_metaoptnets_solution(head):
    """By finite differences in support and queries, of the smoothed loss."""
    method = exact("metaoptnet", head=head, cost=0.3)
    points = torch.from_numpy(np.random.default_rng(1).normal(size=(1, WAY * SHOT + QUERIES, 4)))
    torch.autograd.gradcheck(
        lambda moved: method.loss(batch_of(moved, WAY, SHOT, QUERIES)),
        points.requires_grad_(),
        eps=1e-6,
        atol=1e-6,
    )


def test_metaoptnets_loss_leaves_a_share_of_each_label_to_the_other_classes():
    method = exact("metaoptnet", smoothing=0.2)
    episodes = episodes_of(method, count=1)
    shares = scores(method, episodes)[0].softmax(dim=-1).log().numpy()
    expected = [
        (0.8 if k == query // EACH else 0.2 / (WAY - 1)) * -shares[query, k]
        for query, k in itertools.product(range(QUERIES), range(WAY))
    ]
    assert method.loss(episodes).item() == pytest.approx(sum(expected) / QUERIES, rel=1e-9)


def can_attention(method, mine, other):
    """Weights of the positions of a map beside another, position by position."""
    own = [vector / np.linalg.norm(vector) for vector in mine.T]
    its = [vector / np.linalg.norm(vector) for vector in other.T]
    cosines = np.array([[a @ b for b in its] for a in own])
    with torch.no_grad():
        weighing = method.weigh(torch.from_numpy(cosines.mean(axis=0))[None])[0].numpy()
    found = np.array([np.mean(row * weighing) for row in cosines]) / method.options.temperature
    shares = np.exp(found - found.max())
    return shares / shares.sum() + 1


def can_score(method, class_map, query_map):
    """Seven times the cosine of the weighted means over positions."""
    pairs = ((class_map, query_map), (query_map, class_map))
    one, two = ((mine * can_attention(method, mine, other)).mean(axis=1) for mine, other in pairs)
    return 7 * (one @ two) / (np.linalg.norm(one) * np.linalg.norm(two))


def can_maps(seed):
    """A method in float64, points of an episode, and the maps of its classes and queries."""
    method = exact("can", transductive=False)
    features = method.base_features * 4  # of maps of 2x2
    random = np.random.default_rng(seed)
    points = torch.from_numpy(random.normal(1, 1, (1, WAY * SHOT + QUERIES, features)))
    maps = points[0].reshape(len(points[0]), -1, 4).numpy()
    support = maps[: WAY * SHOT].reshape(WAY, SHOT, -1, 4)
    return method, batch_of(points, WAY, SHOT, QUERIES), support, maps[WAY * SHOT :]


def test_can_by_loops_over_pairs_and_positions():
    method, episodes, support, queries = can_maps(0)
    found = scores(method, episodes)[0].numpy()
    for query, k in itertools.product(range(QUERIES), range(WAY)):
        expected = can_score(method, support[k].mean(axis=0), queries[query])
        assert found[query, k] == pytest.approx(expected, rel=1e-9)


def test_in_can_the_surest_queries_join_the_support_twice():
    """Of 15 queries 7, then 14: as many as 35 and 70 are of 75."""
    method, episodes, support, queries = can_maps(0)
    found = [
        can_score(method, support[k].mean(axis=0), query) for query in queries for k in range(WAY)
    ]
    found = np.array(found).reshape(QUERIES, WAY)
    for joining in (7, 14):
        surest = np.argsort(-found.max(axis=1))[:joining]
        given = found.argmax(axis=1)
        means = [
            np.concatenate([support[k], *(queries[[q]] for q in surest if given[q] == k)]).mean(
                axis=0
            )
            for k in range(WAY)
        ]
        again = [can_score(method, means[k], query) for query in queries for k in range(WAY)]
        found = np.array(again).reshape(QUERIES, WAY)
    transductive = exact("can")
    transductive.load_state_dict(method.state_dict())
    assert scores(transductive, episodes)[0].numpy() == pytest.approx(found, rel=1e-9)


def test_cans_loss_is_that_of_positions_and_of_all_base_classes():
    """Each position of a query beside the weighted mean of each class; then among 9 classes."""
    method, episodes, support, queries = can_maps(1)
    head, classes = (
        torch.nn.Linear(method.base_features, 9).double(),
        torch.tensor([[8, 0, 3, 5, 2]]),
    )
    weight, bias = (p.detach().numpy() for p in head.parameters())
    local, among_all = [], []
    for query in range(QUERIES):
        own = query // EACH
        means = [support[k].mean(axis=0) for k in range(WAY)]
        pooled = [(m * can_attention(method, m, queries[query])).mean(axis=1) for m in means]
        weights = can_attention(method, queries[query], means[own])
        for position in range(4):
            vector = queries[query][:, position]
            logits = [
                7 * vector @ mean / np.linalg.norm(vector) / np.linalg.norm(mean) for mean in pooled
            ]
            local.append(np.log(np.exp(logits).sum()) - logits[own])
            logits = weight @ (vector * weights[position]) + bias
            among_all.append(np.log(np.exp(logits).sum()) - logits[classes[0, own]])
    assert method.loss(episodes).item() == pytest.approx(np.mean(local) / 2, rel=1e-9)
    joint = method.joint_loss(episodes, head, classes).item()
    assert joint == pytest.approx(np.mean(among_all) + np.mean(local) / 2, rel=1e-9)


def test_drop_block_drops_whole_squares_and_keeps_the_mean():
    layer, maps = DropBlock(3, 0.3, growing=2), torch.ones(64, 32, 7, 7)
    layer(maps)
    dropped = layer(maps)  # the second call: the whole share
    zero = dropped == 0
    assert float(zero.float().mean()) == pytest.approx(0.3, abs=0.05)
    assert float(dropped.mean()) == pytest.approx(1, rel=1e-5)
    corners = zero.unfold(2, 3, 1).unfold(3, 3, 1).all(dim=-1).all(dim=-1)  # (n, c, 5, 5)
    covered = functional.max_pool2d(
        functional.pad(corners.float(), (2, 2, 2, 2)), 3, stride=1
    )  # every zero lies in a square of zeros
    assert torch.equal(covered > 0, zero)
    assert torch.equal(layer.eval()(maps), maps)


def test_drop_block_drops_more_from_call_to_call():
    layer, maps = DropBlock(1, 0.5, growing=4), torch.ones(64, 32, 8, 8)
    shares = [float((layer(maps) == 0).float().mean()) for _ in range(6)]
    assert shares == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5, 0.5], abs=0.01)


def test_matching_by_loops():
    method = exact("matching", scale=7.0)
    episodes = episodes_of(method)
    found = scores(method, episodes).exp().numpy()
    points = episodes.points.numpy()
    points = points / np.linalg.norm(points, axis=-1, keepdims=True)
    for episode, shares in zip(points, found, strict=True):
        for query in range(QUERIES):
            attention = [math.exp(7 * episode[WAY * SHOT + query] @ episode[i]) for i in range(10)]
            for k in range(WAY):
                expected = sum(attention[k * SHOT : (k + 1) * SHOT]) / sum(attention)
                assert shares[query, k] == pytest.approx(expected, rel=1e-6)


def test_relation_net_by_loops():
    assert build("relation-net", pixels=84).map == (64, 19)
    method = exact("relation-net")
    episodes = episodes_of(method, count=1)
    channels, side = method.map
    maps = episodes.points[0].reshape(-1, channels, side, side)
    found = scores(method, episodes)[0]
    for query, k in itertools.product(range(QUERIES), range(WAY)):
        total = maps[k * SHOT : (k + 1) * SHOT].sum(dim=0)
        pair = torch.cat([total, maps[WAY * SHOT + query]])[None]
        with torch.no_grad():
            hidden = method.relation(pair)
            assert torch.allclose(method.last(hidden)[0, 0], found[query, k])
    expected = [
        (torch.sigmoid(found[q, k]) - float(q // EACH == k)) ** 2
        for q, k in itertools.product(range(QUERIES), range(WAY))
    ]
    assert method.loss(episodes).item() == pytest.approx(float(sum(expected)) / 75, rel=1e-5)


def tpn_scores(points, neighbors, alpha):
    """Scores of one episode: `(I - alpha S)^-1 Y` with weights, mask and degrees by loops."""
    count = len(points)
    weights = np.zeros((count, count))
    for i, j in itertools.product(range(count), repeat=2):
        weights[i, j] = math.exp(-np.mean((points[i] - points[j]) ** 2) / 2)
    near = [set(np.argsort(-row)[:neighbors]) for row in weights]
    for i, j in itertools.product(range(count), repeat=2):
        if j not in near[i] and i not in near[j]:
            weights[i, j] = 0
    degrees = weights.sum(axis=1)
    graph = weights / np.sqrt(np.outer(degrees, degrees))
    labels = np.zeros((count, WAY))
    for i in range(WAY * SHOT):
        labels[i, i // SHOT] = 1
    return np.linalg.inv(np.eye(count) - alpha * graph) @ labels


@pytest.mark.parametrize(("neighbors", "alpha"), [(20, 0.99), (4, 0.5)])
def test_tpn_by_its_closed_form(neighbors, alpha):
    method = exact("tpn", neighbors=neighbors, alpha=alpha)
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(2, WAY * SHOT + QUERIES, 8)))
    episodes = batch_of(points, WAY, SHOT, QUERIES)
    found = scores(method, episodes).numpy()
    losses = []
    for episode, logits in zip(points.numpy(), found, strict=True):
        whole = tpn_scores(episode, neighbors, alpha)
        assert logits == pytest.approx(whole[WAY * SHOT :], rel=1e-8, abs=1e-10)
        classes = [i // SHOT for i in range(WAY * SHOT)] + [i // EACH for i in range(QUERIES)]
        losses += [
            math.log(sum(map(math.exp, row))) - row[k]
            for row, k in zip(whole, classes, strict=True)
        ]
    assert method.loss(episodes).item() == pytest.approx(np.mean(losses), rel=1e-9)


def test_tpn_divides_features_by_what_the_image_says():
    method = exact("tpn")
    images = torch.rand(4, 3, 28, 28).double()
    with torch.no_grad():
        maps = method.encoder(images)
        widths = method.width(maps)
        expected = maps.flatten(1) / widths
        assert torch.allclose(method.embed(images).double(), expected, rtol=1e-5)


def test_a_layer_of_gnn_by_loops():
    """Softmax over the neighbors of a network of |x_i - x_j|; then a linear map of both."""
    method = exact("gnn")
    layer = method.layers[0]
    nodes = torch.rand(1, 4, 133).double()
    found = layer(nodes)[0]
    x = nodes[0]
    for i in range(4):
        logits = {}
        for j in range(4):
            if j != i:
                hidden = layer.pairs.layers((x[i] - x[j]).abs()[None])
                logits[j] = layer.pairs.last(hidden)[0, 0]
        total = sum(value.exp() for value in logits.values())
        mean = sum(value.exp() / total * x[j] for j, value in logits.items())
        expected = layer.linear(torch.cat([x[i], mean]))
        assert torch.allclose(found[i], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("unlabeled", [0, 3])
def test_gnn_gives_what_whole_layers_over_each_querys_graph_give(unlabeled):
    """A test computes no pair twice and no value that a query's logits do not need."""
    method = exact("gnn")
    episodes = episodes_of(method, unlabeled=unlabeled)
    found = scores(method, episodes)
    labels = torch.eye(WAY).repeat_interleave(SHOT, dim=0).double()
    support, unknown = WAY * SHOT, [0.0] * WAY
    for points, logits in zip(episodes.points, found, strict=True):
        others = [*range(support), *range(support + QUERIES, len(points))]
        for query in range(QUERIES):
            chosen = points[[*others, support + query]]
            known = torch.cat([labels, torch.tensor([unknown] * (unlabeled + 1)).double()])
            nodes = torch.cat([chosen, known], dim=1)[None]
            with torch.no_grad():
                for layer, norm in zip(method.layers, method.norms, strict=True):
                    added = functional.leaky_relu(norm(layer(nodes)[0]))
                    nodes = torch.cat([nodes, added[None]], dim=2)
                expected = method.last(nodes)[0, -1]
            assert torch.allclose(logits[query], expected, rtol=1e-5, atol=1e-6)


def test_edges_begin_with_what_labels_say():
    """Two images of a class, one of another, one of none."""
    labels = torch.tensor([[[1.0, 0], [1, 0], [0, 1], [0, 0]]])
    similar, dissimilar = initial_edges(labels)[0]
    assert similar.tolist() == [[1, 1, 0, 0.5], [1, 1, 0, 0.5], [0, 0, 1, 0.5], [0.5, 0.5, 0.5, 1]]
    assert torch.equal(dissimilar, 1 - similar)


def test_node_update_of_four_nodes_by_hand():
    """A node and its neighbors' shares-weighted sums, by like and by unlike edges, in a network."""
    method = exact("egnn")
    layer = method.rounds[1]
    random = np.random.default_rng(0)
    nodes, edges = random.normal(size=(1, 4, 96)), random.uniform(0.1, 0.9, (1, 2, 4, 4))
    found, _ = layer(torch.from_numpy(nodes), torch.from_numpy(edges))
    for i in range(4):
        seen = [nodes[0, i]]
        for part in range(2):
            others = [j for j in range(4) if j != i]
            total = sum(edges[0, part, i, j] for j in others)
            seen.append(sum(edges[0, part, i, j] / total * nodes[0, j] for j in others))
        values = np.concatenate(seen)
        for linear_map, norm, _ in layer.nodes:
            values = linear_map.weight.detach().numpy() @ values
            scaled = (values - norm.running_mean.numpy()) / np.sqrt(norm.running_var.numpy() + 1e-5)
            values = scaled * norm.weight.detach().numpy() + norm.bias.detach().numpy()
            values = np.where(values > 0, values, 0.01 * values)
        assert found[0, i].detach().numpy() == pytest.approx(values, rel=1e-9, abs=1e-12)


def test_edge_update_of_four_nodes_by_hand():
    random = np.random.default_rng(0)
    old = random.uniform(0.1, 0.9, (1, 2, 4, 4))
    similar = random.uniform(0.1, 0.9, (1, 4, 4))
    found = updated_edges(torch.from_numpy(old), torch.from_numpy(similar)).numpy()[0]
    for i in range(4):
        parts = np.zeros((2, 4))
        for part, j in itertools.product(range(2), range(4)):
            if j != i:
                value = similar[0, i, j] if part == 0 else 1 - similar[0, i, j]
                parts[part, j] = value * old[0, part, i, j]
        for part in range(2):
            before = sum(old[0, part, i, j] for j in range(4) if j != i)
            parts[part] *= before / parts[part].sum()
        parts[0, i] = 1
        parts += 1e-6
        assert found[:, i] == pytest.approx(parts / parts.sum(axis=0), rel=1e-9)


@pytest.mark.parametrize("transductive", [True, False])
def test_loss_of_egnn_weighs_equal_and_different_pairs_alike(transductive):
    method = exact("egnn", transductive=transductive)
    episodes = episodes_of(method, count=1, shot=1)
    similar, _, _ = method._rounds(batch_of(episodes.points, WAY, 1, QUERIES))
    classes = [*range(WAY), *(q // EACH for q in range(QUERIES))]
    graphs = [range(WAY + QUERIES)]
    if not transductive:
        graphs = [[*range(WAY), WAY + q] for q in range(QUERIES)]
    expected = 0.0
    for weight, edges in zip((0.5, 0.5, 1), similar, strict=True):
        errors = {True: [], False: []}
        for graph, found in zip(graphs, edges.tolist(), strict=True):
            for a, b in itertools.product(range(len(graph)), repeat=2):
                if max(a, b) >= WAY and (a != b or transductive):
                    equal = classes[graph[a]] == classes[graph[b]]
                    errors[equal].append(-math.log(found[a][b] if equal else 1 - found[a][b]))
        expected += weight * (np.mean(errors[True]) + np.mean(errors[False]))
    found = method.loss(batch_of(episodes.points, WAY, 1, QUERIES)).item()
    assert found == pytest.approx(expected / 3, rel=1e-6)  # the mean of the three rounds


# -- MAML ------------------------------------------------------------------------------------------


def maml(**options):
    """16 pixels, in float64, with weights that are not zero."""
    method = exact("maml", pixels=16, steps=2, inner_rate=0.3, **options)
    with torch.no_grad():
        for weight in method.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return method


def slope(method, episodes, name, place):
    """The slope of the loss along one weight, by finite differences."""
    weight = dict(method.named_parameters())[name].data.view(-1)
    values = []
    for step in (1e-7, -1e-7):
        weight[place] += step
        values.append(method.loss(episodes).item())
        weight[place] -= step
    return (values[0] - values[1]) / 2e-7


def gradients(method, episodes):
    method.zero_grad()
    method.loss(episodes).backward()
    return {name: weight.grad.flatten() for name, weight in method.named_parameters()}


WEIGHTS = ["convolution0_weight", "norm1_bias", "convolution3_weight", "head_weight", "head_bias"]


@pytest.mark.parametrize("adapted", ["all", "head"])
@pytest.mark.parametrize("statistics", ["support", "batch"])
def test_the_gradient_goes_through_the_steps(adapted, statistics):
    method = maml(adapted=adapted, statistics=statistics)
    episodes = episodes_of(method, count=1, shot=1, pixels=16)
    found = gradients(method, episodes)
    for name in WEIGHTS:
        place = int(found[name].abs().argmax())
        assert found[name][place].item() == pytest.approx(
            slope(method, episodes, name, place), rel=1e-4
        )


def test_in_first_order_the_gradient_is_that_at_the_adapted_weights():
    method = maml(gradient="first-order")
    episodes = episodes_of(method, count=1, shot=1, pixels=16)
    found = gradients(method, episodes)
    images = episodes.points[0].reshape(-1, 3, 16, 16)
    support, labels = images[:WAY], torch.arange(WAY)
    weights = {name: weight.detach().clone() for name, weight in method.named_parameters()}
    for _ in range(2):
        leaves = {name: weight.requires_grad_() for name, weight in weights.items()}
        loss = functional.cross_entropy(method(leaves, support, WAY), labels)
        steps = torch.autograd.grad(loss, list(leaves.values()))
        weights = {
            name: (leaves[name] - 0.3 * step * (not name.startswith("norm"))).detach()
            for name, step in zip(leaves, steps, strict=True)
        }
    leaves = {name: weight.requires_grad_() for name, weight in weights.items()}
    classes = torch.arange(WAY).repeat_interleave(EACH)
    functional.cross_entropy(method(leaves, images, WAY)[WAY:], classes).backward()
    for name, weight in leaves.items():
        assert torch.allclose(found[name], weight.grad.flatten(), rtol=1e-6, atol=1e-10), name


def test_a_test_takes_its_own_number_of_steps():
    """Against steps written out, the queries normalized with the support's statistics."""
    found = []
    for count in (1, 3):
        torch.manual_seed(0)
        method = maml(test_steps=count)
        episodes = episodes_of(method, count=1, shot=1, pixels=16)
        images = episodes.points[0].reshape(-1, 3, 16, 16)
        weights = {name: weight.detach().clone() for name, weight in method.named_parameters()}
        for _ in range(count):
            leaves = {name: weight.requires_grad_() for name, weight in weights.items()}
            loss = functional.cross_entropy(method(leaves, images[:WAY], WAY), torch.arange(WAY))
            slopes = torch.autograd.grad(loss, list(leaves.values()))
            weights = {
                name: (leaves[name] - 0.3 * slope * (not name.startswith("norm"))).detach()
                for name, slope in zip(leaves, slopes, strict=True)
            }
        found.append(scores(method, episodes)[0])
        assert torch.allclose(found[-1], method(weights, images, WAY)[WAY:], rtol=1e-6, atol=1e-9)
    assert not torch.allclose(*found, rtol=1e-2)


@pytest.mark.parametrize(("adapted", "still"), [("all", "norm"), ("head", ("norm", "convolution"))])
def test_the_steps_leave_shifts_as_they_are_and_those_of_anil_all_but_the_head(adapted, still):
    method = maml(adapted=adapted)
    episodes = episodes_of(method, count=1, shot=1, pixels=16)
    images = episodes.points[0].reshape(-1, 3, 16, 16)
    changed = method.adapt(images[:WAY], torch.arange(WAY), 2, create_graph=False)
    for name, weight in method.named_parameters():
        assert torch.equal(changed[name], weight) == name.startswith(still), name


@pytest.mark.parametrize("twice", [False, True])
def test_maml_normalizes_like_torch(twice):
    """With the statistics of a whole batch it is a usual network in training mode."""
    method = maml()
    images = torch.rand(6, 3, 16, 16).double()
    weights = dict(method.named_parameters())
    x = images
    for layer in range(4):
        x = functional.conv2d(
            x, weights[f"convolution{layer}_weight"], weights[f"convolution{layer}_bias"], padding=1
        )
        shift = weights[f"norm{layer}_bias"]
        x = functional.batch_norm(x, None, None, bias=shift, training=True, eps=1e-3)
        x = functional.max_pool2d(functional.relu(x), 2)
    expected = functional.linear(x.flatten(1), weights["head_weight"], weights["head_bias"])
    assert torch.allclose(method(weights, images, 6, twice=twice), expected)


# -- what the scales ask for -----------------------------------------------------------------------


@pytest.mark.slow
def test_methods_of_the_smallest_official_images_can_be_built():
    """CIFAR-FS and FC100 have 32 pixels; Robust has 20 networks, of which two are enough here."""
    plan = plan_of("small")
    for network in filter(lambda n: plan.compared.has(n.recipe), plan.tested.networks):
        place = network.dataset, network.backbone, network.recipe, 0, network.shot
        config = plan.compared.meta_train(*place)
        settings = config.method
        if settings["name"] == "robust":
            settings = settings | {"members": 2, "relation_weight": 1}
        starts = METHODS[settings["name"]].pretrained
        start = None
        if starts:
            backbone = checkpoint.build(config.backbone)
            start = Pretrained(backbone, torch.zeros(64, backbone.feature_size))
        build_method(settings, 32, 5, network.recipe, start)
