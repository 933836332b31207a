"""Meta-transfer learning (Sun et al. 2019): scales and shifts of a pretrained network."""

from dataclasses import dataclass

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods.base import EpisodicMethod, Pretrained


@dataclass(frozen=True)
class LabeledImages:
    """Images that a linear layer learns from.

    inputs: `(E, n, D + 1)`, features and a one, which the layer's biases multiply. labels: one-hot,
    `(E, n, way)`, or `(n, way)` if all episodes have the same. weights: what the layer's outputs
    are multiplied by, of the labels' shape. divisor: of the sum of the images' cross-entropies.
    """

    inputs: Tensor
    labels: Tensor
    weights: Tensor
    divisor: int


class Mtl(EpisodicMethod):
    """A linear layer that descends on the support, behind a scaled and shifted pretrained network.

    The weights of the network's convolutions stay as they are. Training learns a factor of each of
    their kernels, a shift where a convolution has a bias, BatchNorm, and where the linear layer
    begins. As in the authors' code it takes the gradients of the layer's steps as constants.
    """

    class Options(EpisodicMethod.Options):
        """How the linear layer descends."""

        steps: PositiveInt = Field(default=100, description="of an episode")
        inner_rate: PositiveFloat = Field(default=0.01, description="learning rate of these steps")

    pretrained = True
    separate_batches = True

    def __init__(self, options: Options, pixels: int, way: int, start: Pretrained) -> None:
        super().__init__()
        self.options = options
        scale_convolutions(start.backbone)
        self.backbone = start.backbone
        self.head = nn.Linear(start.backbone.feature_size, way)
        nn.init.kaiming_normal_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def embed(self, images: Tensor) -> Tensor:
        features: Tensor = self.backbone(images)
        return features

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        queries = with_one(episodes.points)[:, episodes.labeled :]
        start = self._start()
        end = self._descended(start.detach(), self._support(episodes), self.options.steps)
        return queries @ (start + (end - start.detach())).mT

    def _start(self) -> Tensor:
        """Weights and biases `(way, D + 1)` where the linear layer begins."""
        return torch.cat([self.head.weight, self.head.bias[:, None]], dim=1)

    def _support(self, episodes: EpisodeBatch) -> LabeledImages:
        labels = episodes.support_labels
        inputs = with_one(episodes.points.detach())[:, : episodes.labeled]
        return LabeledImages(inputs, labels, torch.ones_like(labels), episodes.labeled)

    def _descended(self, layer: Tensor, images: LabeledImages, steps: int) -> Tensor:
        """A layer `(way, D + 1)` or `(E, way, D + 1)` after steps on the images, one of each E."""
        inputs, weights = images.inputs, images.weights
        layer = layer.expand(len(inputs), -1, -1)
        for _ in range(steps):
            errors = (weights * (inputs @ layer.mT)).softmax(dim=-1) - images.labels  # (E, n, way)
            slope = (weights * errors).mT @ inputs / images.divisor
            layer = layer - self.options.inner_rate * slope
        return layer


def with_one(features: Tensor) -> Tensor:
    """Features `(E, n, D)` and a one, `(E, n, D + 1)`."""
    return functional.pad(features, (0, 1), value=1)


class ScaledConvolution(nn.Module):
    """A fixed convolution, times a factor of each kernel; if it has a bias, plus a shift."""

    def __init__(self, convolution: nn.Conv2d) -> None:
        super().__init__()
        self.convolution = convolution.requires_grad_(False)
        outputs, inputs = convolution.weight.shape[:2]
        self.factors = nn.Parameter(torch.ones(outputs, inputs, 1, 1))
        has_bias = convolution.bias is not None
        self.shifts = nn.Parameter(torch.zeros(outputs)) if has_bias else None

    def forward(self, maps: Tensor) -> Tensor:
        fixed = self.convolution
        weights = fixed.weight * self.factors
        scaled = functional.conv2d(maps, weights, fixed.bias, fixed.stride, fixed.padding)
        return scaled if self.shifts is None else scaled + self.shifts[:, None, None]


def scale_convolutions(network: nn.Module) -> None:
    """Puts a `ScaledConvolution` in the place of each convolution of a network."""
    for name, layer in network.named_children():
        if isinstance(layer, nn.Conv2d):
            setattr(network, name, ScaledConvolution(layer))
        else:
            scale_convolutions(layer)
