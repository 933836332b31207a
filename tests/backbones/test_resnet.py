"""ResNet-10, 18 and 34: sizes, shapes, signs, and the layers written out."""

import math
from fractions import Fraction
from importlib import import_module

import pytest
import torch
from torch import nn
from torch.nn import functional

from epcore.backbones.base import parameter_count
from epcore.backbones.build import build_backbone

SIGNED = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2)}
WITH_RELU = {"resnet10-relu": (1, 1, 1, 1), "resnet34": (3, 4, 6, 3)}
BLOCKS = SIGNED | WITH_RELU
# Those of torchvision, without its last layer.
KNOWN = {"resnet10": 4_905_792, "resnet18": 11_176_512, "resnet34": 21_284_672}


def count(blocks, w=64):
    """Convolutions and BatchNorms, stage by stage."""
    total = 49 * 3 * w + 2 * w
    channels = [(w, w), (w, 2 * w), (2 * w, 4 * w), (4 * w, 8 * w)]
    for (inputs, outputs), number in zip(channels, blocks, strict=True):
        total += 9 * inputs * outputs + (2 * number - 1) * 9 * outputs**2 + 4 * number * outputs
        total += (inputs * outputs + 2 * outputs) if inputs != outputs else 0
    return total


@pytest.mark.parametrize("architecture", KNOWN)
def test_networks_have_the_known_numbers_of_parameters(architecture):
    with torch.device("meta"):
        network = build_backbone(architecture)
        narrow = build_backbone(architecture, Fraction(1, 4))
    assert parameter_count(network) == count(BLOCKS[architecture]) == KNOWN[architecture]
    assert parameter_count(narrow) == count(BLOCKS[architecture], 16)
    assert (network.feature_size, narrow.feature_size) == (512, 128)
    assert network(torch.empty(2, 3, 224, 224, device="meta")).shape == (2, 512)


def norm(x, layer):
    return functional.batch_norm(
        x, layer.running_mean, layer.running_var, layer.weight, layer.bias, eps=1e-5
    )


def written_out(network, x, relu):
    convolution, batch_norm = network.stem[0], network.stem[1]
    x = functional.conv2d(x, convolution.weight, stride=2, padding=3)
    x = functional.max_pool2d(norm(x, batch_norm).relu(), 3, 2, 1)
    for number, block in enumerate(network.blocks):
        first, bn1, second, bn2 = block.conv1, block.bn1, block.conv2, block.bn2
        stride = 2 if first.out_channels != first.in_channels else 1
        y = norm(functional.conv2d(x, first.weight, stride=stride, padding=1), bn1).relu()
        y = norm(functional.conv2d(y, second.weight, padding=1), bn2)
        if stride == 2:
            x = norm(
                functional.conv2d(x, block.downsample[0].weight, stride=2), block.downsample[1]
            )
        x = x + y
        if relu or number < len(network.blocks) - 1:
            x = x.relu()
    return x.mean(dim=(2, 3))


def drawn(network):
    """With weights and statistics that none of its layers has by itself."""
    torch.manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.3)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.normal_(module.weight, mean=1, std=0.2)
            nn.init.normal_(module.bias, std=0.2)
    return network.eval()


@pytest.mark.parametrize("architecture", BLOCKS)
@pytest.mark.parametrize("pixels", [28, 65])
def test_features_are_those_of_the_layers_written_out(architecture, pixels):
    network = drawn(build_backbone(architecture, Fraction(1, 16)))
    images = torch.randn(5, 3, pixels, pixels)
    with torch.no_grad():
        features = network(images)
        expected = written_out(network, images, relu=architecture in WITH_RELU)
        torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-5)
    assert (features < 0).any() == (architecture in SIGNED)
    assert (features > 0).any()


@pytest.mark.parametrize("architecture", SIGNED)
def test_the_last_map_is_torchvisions_to_the_bit_before_its_last_relu(architecture):
    import_module("epcore.vision")  # before torchvision
    from torchvision.models.resnet import BasicBlock, ResNet

    network = drawn(build_backbone(architecture))
    theirs = ResNet(BasicBlock, BLOCKS[architecture])
    theirs.fc = nn.Identity()
    names, weights = theirs.state_dict(), network.state_dict().values()
    theirs.load_state_dict(dict(zip(names, weights, strict=True)))
    images = torch.randn(2, 3, 65, 65)
    with torch.no_grad():
        expected = theirs.eval()(images)
        last = network.blocks(network.stem(images))
        assert torch.equal(last.relu().mean(dim=(-2, -1)), expected)
        assert torch.equal(network.maps(images), last)
    assert (last < 0).any()


@pytest.mark.parametrize("architecture", WITH_RELU)
def test_a_network_with_a_last_relu_is_torchvisions(architecture):
    import_module("epcore.vision")  # before torchvision
    from torchvision.models.resnet import BasicBlock, ResNet

    network = drawn(build_backbone(architecture))
    theirs = ResNet(BasicBlock, BLOCKS[architecture])
    theirs.fc = nn.Identity()
    names, weights = theirs.state_dict(), network.state_dict().values()
    theirs.load_state_dict(dict(zip(names, weights, strict=True)))
    images = torch.randn(2, 3, 65, 65)
    with torch.no_grad():
        assert torch.equal(network(images), theirs.eval()(images))


def test_convolutions_start_normal_with_a_spread_by_their_outputs():
    torch.manual_seed(0)
    for module in build_backbone("resnet10", Fraction(1, 2)).modules():
        if isinstance(module, nn.Conv2d):
            weights = module.weight.detach() * math.sqrt(
                module.out_channels * module.kernel_size[0] ** 2 / 2
            )
            assert weights.std().item() == pytest.approx(1, rel=0.1)
            assert weights.abs().max() > 2.5


def test_a_depth_is_refused():
    with pytest.raises(ValueError, match="that of resnet18 is not 1/2"):
        build_backbone("resnet18", depth=Fraction(1, 2))
