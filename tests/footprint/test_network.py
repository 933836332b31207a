"""Effort of a forward pass, against what torch really computes."""

from fractions import Fraction
from pathlib import Path

import pytest
import torch
from torch import nn

from epcore.backbones import build_backbone
from epcore.errors import UserError
from epcore.footprint.forecast import forecast
from epcore.plan import Plan
from epcore.plan import network as counts
from epcore.plan.models import Backbone
from epcore.plan.network import Effort, effort, feature_size

CONFIG = Path(__file__).parents[2] / "config"


def counted(network, pixels):
    """By hooks on every convolution of a real forward pass."""
    found = []

    def count(layer, _, output):
        adds = layer.weight.numel() * output.shape[-1] * output.shape[-2]
        found.append(Effort(adds, output.numel(), layer.weight.numel()))

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(count)
    with torch.no_grad():
        features = network.eval()(torch.zeros(1, 3, pixels, pixels))
    return sum(found, Effort()), features.shape[1]


@pytest.mark.parametrize("pixels", [16, 28, 45, 84])
@pytest.mark.parametrize(
    ("architecture", "width", "depth"),
    [
        ("conv4", "1", "1"),
        ("conv4", "1/8", "1"),
        ("resnet12", "1/4", "1"),
        ("wide-resnet", "1/5", "1/4"),
        ("wide-resnet", "1/10", "1"),
        ("resnet10", "1/4", "1"),
        ("resnet18", "1/8", "1"),
    ],
)
def test_effort_is_what_torch_computes(architecture, width, depth, pixels):
    network = build_backbone(architecture, Fraction(width), Fraction(depth))
    settings = Backbone(architecture=architecture, width=width, depth=depth)
    assert (effort(settings, pixels), feature_size(settings)) == counted(network, pixels)


def test_the_papers_networks_have_the_papers_weights():
    """Millions of weights of convolutions, as in its tables."""
    weights = {
        name: effort(Backbone(architecture=name), 84).weights
        for name in ("conv4", "resnet12", "wide-resnet")
    }
    assert weights["conv4"] == 112_320
    assert weights["resnet12"] == 7_989_120
    assert 36_500_000 < weights["wide-resnet"] < 36_600_000


@pytest.mark.parametrize("ask", [lambda b: effort(b, 84), feature_size])
def test_a_backbone_whose_cost_nobody_counted_is_not_guessed(ask):
    new = Backbone.model_construct(architecture="resnet50", width=Fraction(1), depth=Fraction(1))
    message = r"cost of backbone resnet50 is not known; add it .* in epcore/plan/network\.py$"
    with pytest.raises(UserError, match=message):
        ask(new)


def test_a_forecast_of_such_a_backbone_is_one_line(tmp_path, monkeypatch):
    """The workflow prints it in place of the forecast and goes on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(counts._COUNTS, "conv4")
    with pytest.raises(UserError, match=r"add it .* in epcore/plan/network\.py$"):
        forecast(Plan(CONFIG, "paper"), ["tables/main.tex"])
