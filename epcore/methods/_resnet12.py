"""Residual encoders of compared methods: those of TADAM, MetaOptNet and CAN."""

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class ResidualBlock(nn.Module):
    """Three 3x3 convolutions beside a 1x1 shortcut, all with BatchNorm; activation, 2x2 max-pool.

    The pool of a map with an odd side leaves out its last row and column, or not if `ceil`. With a
    `stride` the second convolution and the shortcut have it.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        activation: Callable[[], nn.Module],
        pool: bool = True,
        ceil: bool = False,
        stride: int = 1,
    ) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *(_convolution(inputs, outputs, 3), activation()),
            *(_convolution(outputs, outputs, 3, stride), activation()),
            _convolution(outputs, outputs, 3),
        )
        self.shortcut = _convolution(inputs, outputs, 1, stride)
        self.activation = activation()
        self.pool = nn.MaxPool2d(2, ceil_mode=ceil) if pool else nn.Identity()

    def forward(self, maps: Tensor) -> Tensor:
        pooled: Tensor = self.pool(self.activation(self.path(maps) + self.shortcut(maps)))
        return pooled


class DropBlock(nn.Module):
    """In training sets squares of maps `(n, c, s, s)` to zero, and scales up what is left.

    As in MetaOptNet's code (after Ghiasi et al. 2018) the share that is dropped grows with each
    call to `share` after `growing` calls.
    """

    calls: Tensor

    def __init__(self, side: int, share: float, growing: int = 40_000) -> None:
        super().__init__()
        self.side, self.share, self.growing = side, share, growing
        self.register_buffer("calls", torch.zeros(()))  # a float: checkpoints hold no integers

    def forward(self, maps: Tensor) -> Tensor:
        if not self.training:
            return maps
        self.calls += 1
        dropped = self.share * min(int(self.calls) / self.growing, 1)
        places = maps.shape[-1] - self.side + 1  # of a square, in each direction
        density = dropped / self.side**2 * maps.shape[-1] ** 2 / places**2
        corners = (
            torch.rand(*maps.shape[:2], places, places, device=maps.device) < density
        ).float()
        squares = functional.max_pool2d(
            functional.pad(corners, (self.side - 1,) * 4), self.side, stride=1
        )  # (n, c, s, s), 1 where a square lies
        kept = (1 - squares).to(maps.dtype)
        return maps * kept * (kept.numel() / kept.float().sum()).to(maps.dtype)


def tadam_encoder(channels: tuple[int, ...]) -> nn.Sequential:
    """Blocks with swish and three pools between them; the map of the last block.

    As in the code of TADAM and of AM3's ProtoNets++, whose channels are 64, 128, 256 and 512, but
    with torch's momentum and epsilon of BatchNorm: a short training needs the former.
    """
    last = len(channels) - 1
    blocks = [
        ResidualBlock(inputs, outputs, nn.SiLU, pool=number < last, ceil=True)
        for number, (inputs, outputs) in enumerate(pairwise((3, *channels)))
    ]
    encoder = nn.Sequential(*blocks)
    draw_by_outputs(encoder, 0.2)  # their factor of 0.1 times 2
    return encoder


def metaoptnet_encoder(channels: tuple[int, ...], share: float, side: int) -> nn.Sequential:
    """Blocks with leaky ReLU, each with a pool; the map of the last one.

    As in MetaOptNet's code, whose channels are 64, 160, 320 and 640: dropout of a share of the
    values behind the first two blocks, and of squares behind the others.
    """
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(pairwise((3, *channels))):
        layers.append(ResidualBlock(inputs, outputs, _leaky_relu))
        layers.append(nn.Dropout(share) if number < 2 else DropBlock(side, share))
    encoder = nn.Sequential(*layers)
    draw_by_outputs(encoder, 2)
    return encoder


def can_encoder(channels: tuple[int, ...]) -> nn.Sequential:
    """A convolution and blocks with ReLU and strides instead of pools; the map of the last one.

    As in CAN's code, whose channels are 64, 128, 256 and 512.
    """
    blocks = [
        ResidualBlock(inputs, outputs, nn.ReLU, pool=False, stride=2)
        for inputs, outputs in pairwise((channels[0], *channels))
    ]
    encoder = nn.Sequential(_convolution(3, channels[0], 3), nn.ReLU(inplace=True), *blocks)
    draw_by_outputs(encoder, 2)
    return encoder


def _leaky_relu() -> nn.Module:
    return nn.LeakyReLU(0.1, inplace=True)


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )


def draw_by_outputs(network: nn.Module, variance: float) -> None:
    """Normal first weights whose variance is divided by the outputs times the kernel's area.

    Of convolutions and linear layers, whose first biases are 0.
    """
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            outputs, _, *kernel = layer.weight.shape
            nn.init.normal_(layer.weight, std=(variance / (outputs * math.prod(kernel))) ** 0.5)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
