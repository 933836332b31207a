"""The feature extractors are those of the authors' code: sizes, shapes, structure, arithmetic."""

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import get_args

import pytest
import torch
from scipy import stats
from torch import nn
from torch.nn import functional

from epcore.backbones.base import parameter_count
from epcore.backbones.build import build_backbone
from epcore.backbones.config import Architecture
from epcore.config.load import read_yaml

FULL = {"conv4": (64, 112_832, 112_320), "resnet12": (512, 7_996_864, 7_989_120),
        "wide-resnet": (640, 36_578_320, 36_558_960)}  # fmt: skip
NARROW = {"conv4": Fraction(1, 4), "resnet12": Fraction(1, 16), "wide-resnet": Fraction(1, 20)}


def on_paper(architecture, width=1, depth=1):
    """The network without memory or arithmetic: shapes and counts only."""
    with torch.device("meta"):
        return build_backbone(architecture, Fraction(width), Fraction(depth)).eval()


def narrow(architecture, seed=0):
    """A small network whose BatchNorms are not the identity, in evaluation mode."""
    torch.manual_seed(seed)
    network = build_backbone(architecture, NARROW[architecture])
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            nn.init.normal_(module.running_mean, std=0.3)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.normal_(module.weight, mean=1, std=0.2)
            nn.init.normal_(module.bias, std=0.2)
    return network.eval()


def convolution_weights(network):
    return sum(m.weight.numel() for m in network.modules() if isinstance(m, nn.Conv2d))


# Counts from the description in the paper and the authors' code, as sums over the layers.


def conv4_count(w):
    convolutions = 9 * 3 * w + 3 * 9 * w * w
    return convolutions, convolutions + 4 * 2 * w


def resnet12_count(w):
    convolutions = rest = 0
    for i, o in [(3, w), (w, 2 * w), (2 * w, 4 * w), (4 * w, 8 * w)]:
        convolutions += 9 * i * o + 2 * 9 * o * o + i * o
        rest += 3 * 2 * o + o  # BatchNorms, bias of the shortcut
    return convolutions, convolutions + rest + 2 * 8 * w


def wide_resnet_count(w, blocks=4):
    convolutions, rest = 9 * 3 * w, 2 * w
    for i, o in [(w, 2 * w), (2 * w, 4 * w), (4 * w, 8 * w)]:
        convolutions += 9 * i * o + (2 * blocks - 1) * 9 * o * o + i * o
        rest += 2 * blocks * 2 * o
    return convolutions, convolutions + rest + 2 * 8 * w


COUNTS = {
    "conv4": (64, conv4_count),
    "resnet12": (64, resnet12_count),
    "wide-resnet": (80, wide_resnet_count),
}


@pytest.mark.parametrize("architecture", FULL)
def test_the_papers_networks_have_the_known_numbers_of_parameters_and_features(architecture):
    size, parameters, convolutions = FULL[architecture]
    network = on_paper(architecture)
    assert parameter_count(network) == parameters
    assert convolution_weights(network) == convolutions
    assert network.feature_size == size
    channels, count = COUNTS[architecture]
    assert count(channels) == (convolutions, parameters)


@pytest.mark.parametrize(
    ("architecture", "width"),
    [("conv4", "1"), ("conv4", "1/8"), ("resnet12", "1/4"), ("resnet12", "2"),
     ("wide-resnet", "1/10"), ("wide-resnet", "1/80")],
)  # fmt: skip
def test_a_width_multiplies_every_channel(architecture, width):
    network = on_paper(architecture, width)
    channels, count = COUNTS[architecture]
    scaled = Fraction(width) * channels
    assert (convolution_weights(network), parameter_count(network)) == count(scaled)
    assert network.feature_size == Fraction(width) * FULL[architecture][0]


@pytest.mark.parametrize(
    ("architecture", "ratio"),
    [("conv4", "1/3"), ("conv4", "1/128"), ("resnet12", "1/128"), ("resnet12", "1/10"),
     ("wide-resnet", "1/160"), ("wide-resnet", "1/3"), ("conv4", "0")],
)  # fmt: skip
def test_a_width_that_leaves_no_whole_channels_is_refused(architecture, ratio):
    message = f"ratio of {ratio} does not divide (64|80) channels into whole ones"
    with pytest.raises(ValueError, match=message):
        build_backbone(architecture, Fraction(ratio))


@pytest.mark.parametrize("blocks", [1, 2, 3, 8])
def test_a_depth_multiplies_the_four_blocks_of_each_group_of_the_wide_resnet(blocks):
    network = on_paper("wide-resnet", "1/5", Fraction(blocks, 4))
    assert len(network.blocks) == 3 * blocks
    counts = convolution_weights(network), parameter_count(network)
    assert counts == wide_resnet_count(16, blocks)
    assert network(torch.empty(2, 3, 28, 28, device="meta")).shape == (2, 128)


def test_a_depth_that_leaves_no_whole_blocks_is_refused():
    for depth in ("1/8", "1/3", "0"):
        message = f"ratio of {depth} does not divide 4 blocks into whole ones"
        with pytest.raises(ValueError, match=message):
            build_backbone("wide-resnet", depth=Fraction(depth))
    for architecture in ("conv4", "resnet12"):
        with pytest.raises(ValueError, match=f"that of {architecture} is not 1/2"):
            build_backbone(architecture, depth=Fraction(1, 2))


@pytest.mark.parametrize("pixels", [84, 80, 32, 28])
@pytest.mark.parametrize("architecture", FULL)
def test_images_of_any_size_become_one_vector_each(architecture, pixels):
    images = torch.empty(2, 3, pixels, pixels, device="meta")
    assert on_paper(architecture)(images).shape == (2, FULL[architecture][0])
    features = narrow(architecture)(torch.rand(2, 3, pixels, pixels))
    assert features.shape == (2, FULL[architecture][0] * NARROW[architecture])
    assert features.isfinite().all()


@pytest.mark.parametrize("architecture", FULL)
def test_features_are_not_negative_and_not_all_zero(architecture):
    for network in (narrow(architecture), narrow(architecture).train()):
        features = network(torch.rand(6, 3, 28, 28) * 2 - 1)
        assert (features >= 0).all()
        assert (features > 0).float().mean() > 0.1


@pytest.mark.parametrize("architecture", FULL)
def test_in_evaluation_an_images_features_depend_on_that_image_only(architecture):
    network, images = narrow(architecture), torch.rand(5, 3, 32, 32)
    together = network(images)
    alone = torch.cat([network(image[None]) for image in images])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    assert (together[0] - together[1]).abs().max() > 1e-3


@pytest.mark.parametrize("architecture", ["resnet12", "wide-resnet"])
def test_dropout_of_whole_channels_is_off_in_evaluation_and_on_in_training(architecture):
    network, images = narrow(architecture), torch.rand(4, 3, 32, 32)
    assert torch.equal(network(images), network(images))
    for module in network.modules():
        if isinstance(module, nn.Dropout2d):
            assert module.p == 0.1
            module.train()
    assert not torch.equal(network(images), network(images))


def test_each_resnet12_block_has_two_dropouts_and_a_shortcut_with_bias_and_without_norm():
    network = on_paper("resnet12")
    assert len(network.blocks) == 4
    for block in network.blocks:
        assert sum(isinstance(m, nn.Dropout2d) for m in block.modules()) == 2
        assert sum(isinstance(m, nn.BatchNorm2d) for m in block.modules()) == 3
        one_by_one = [
            m for m in block.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1)
        ]
        assert len(one_by_one) == 1
        assert one_by_one[0].bias is not None
    assert not any(isinstance(m, nn.LeakyReLU) for m in network.modules())


# -- the arithmetic, layer by layer, from the weights alone ------------------------------------


class Weights:
    """Hands out a network's tensors in the order of its state."""

    def __init__(self, network):
        state = network.state_dict()
        self.left = [t for name, t in state.items() if not name.endswith("num_batches_tracked")]

    def take(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def norm(self, x):
        weight, bias, mean, variance = self.take(4)
        shape = [1, -1] + [1] * (x.dim() - 2)
        weight, bias, mean, variance = (t.view(shape) for t in (weight, bias, mean, variance))
        return weight * (x - mean) / (variance + 1e-5).sqrt() + bias

    def convolution_and_norm(self, x, stride=1):
        (kernel,) = self.take(1)
        return self.norm(functional.conv2d(x, kernel, stride=stride, padding=1))


def written_conv4(weights, x):
    for _ in range(4):
        x = functional.max_pool2d(weights.convolution_and_norm(x).relu(), 2)
    return x.mean((2, 3))


def written_resnet12(weights, x):
    for _ in range(4):
        out = weights.convolution_and_norm(x).relu()
        out = weights.convolution_and_norm(out).relu()
        out = weights.convolution_and_norm(out)
        out = (out + functional.conv2d(x, *weights.take(2))).relu()
        x = functional.max_pool2d(out, 3, stride=2, padding=1)
    return weights.norm(x.mean((2, 3))).relu()


def written_wide_resnet(weights, x):
    x = weights.convolution_and_norm(x).relu()
    for _ in range(3):
        for stride in (2, 1, 1, 1):
            out = weights.convolution_and_norm(x, stride).relu()
            out = weights.convolution_and_norm(out)
            shortcut = functional.conv2d(x, *weights.take(1), stride=2) if stride == 2 else x
            x = (out + shortcut).relu()
    return weights.norm(x.mean((2, 3))).relu()


@pytest.mark.parametrize(
    ("architecture", "written"),
    [("conv4", written_conv4), ("resnet12", written_resnet12),
     ("wide-resnet", written_wide_resnet)],
)  # fmt: skip
def test_features_are_those_of_the_layers_written_out(architecture, written):
    network, images = narrow(architecture), torch.rand(3, 3, 32, 32) * 2 - 1
    weights = Weights(network)
    torch.testing.assert_close(network(images), written(weights, images), rtol=1e-4, atol=1e-5)
    assert weights.left == []


def test_every_weight_of_a_narrow_wide_resnet_gets_a_gradient():
    torch.manual_seed(0)
    network = build_backbone("wide-resnet", Fraction(1, 10))
    features = network(torch.rand(4, 3, 28, 28))
    assert features.shape == (4, 64)
    features.square().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in network.parameters())


def test_all_convolutions_of_a_wide_resnets_block_start_as_kaiming_has_it_and_the_stem_does_not():
    """PAPER_VS_CODE A.5 and its corrections: the official wrn.py calls `kaiming_normal_` on
    conv0, conv1 and conv_reduce with its defaults: fan in, gain sqrt(2). Its stem keeps torch's
    own start, uniform between +-1 / sqrt(fan in).
    """
    torch.manual_seed(0)
    network = build_backbone("wide-resnet", Fraction(1, 2), Fraction(1, 2))
    seen = Counter()
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_in = module.in_channels * module.kernel_size[0] ** 2
            if module is network.stem[0]:
                start = stats.uniform(-(fan_in**-0.5), 2 * fan_in**-0.5)
            else:
                start = stats.norm(0, math.sqrt(2 / fan_in))
            weights = module.weight.detach().flatten().numpy()
            assert stats.kstest(weights, start.cdf).pvalue > 1e-3
            seen[module.kernel_size] += 1
    assert seen == {(3, 3): 1 + 3 * 2 * 2, (1, 1): 3}


CONFIG = Path(__file__).parents[2] / "config"


@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_a_backbone_is_in_every_place_that_the_readme_names(architecture):
    """In the paper's large-scale table instead of a scale are those of imagenet-fs.yaml."""
    assert type(on_paper(architecture)).__module__.startswith("epcore.backbones.")
    small = read_yaml(CONFIG / "backbones.yaml")
    large = read_yaml(CONFIG / "imagenet-fs.yaml")["networks"]
    names = [n for n, info in (small | large).items() if info["architecture"] == architecture]
    placed = large.keys() | read_yaml(CONFIG / "scales/paper.yaml")["backbones"].keys()
    assert placed & set(names)
