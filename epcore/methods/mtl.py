"""Meta-transfer learning (Sun et al. 2019): scales and shifts of a pretrained network."""

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods.base import EpisodicMethod, Pretrained


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
        inputs = functional.pad(episodes.points, (0, 1), value=1)  # (E, N, D + 1)
        support, queries = inputs[:, : episodes.labeled], inputs[:, episodes.labeled :]
        start = torch.cat([self.head.weight, self.head.bias[:, None]], dim=1)  # (way, D + 1)
        change = self._descent(start.detach(), support.detach(), episodes.support_labels)
        return queries @ (start + change).mT

    def _descent(self, start: Tensor, support: Tensor, labels: Tensor) -> Tensor:
        """How far `(E, way, D + 1)` the support's cross-entropy moves a layer from its start."""
        weights = start.expand(len(support), -1, -1)
        for _ in range(self.options.steps):
            errors = (support @ weights.mT).softmax(dim=-1) - labels  # (E, labeled, way)
            slope = errors.mT @ support / support.shape[1]
            weights = weights - self.options.inner_rate * slope
        return weights - start


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
