"""Convolutional encoders that compared methods bring with them."""

import torch
from torch import Tensor, nn


def block(
    inputs: int, outputs: int, padding: int, slope: float, pool: bool = True
) -> nn.Sequential:
    """3x3 convolution without bias, BatchNorm, 2x2 max-pool, (leaky) ReLU.

    The activation stands behind the pool, where it gives the same values from a quarter of them.
    """
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=padding, bias=False),
        nn.BatchNorm2d(outputs),
        nn.MaxPool2d(2) if pool else nn.Identity(),
        nn.LeakyReLU(slope, inplace=True) if slope else nn.ReLU(inplace=True),
    )


def map_size(encoder: nn.Module, pixels: int) -> tuple[int, int]:
    """Channels and side of the map that an encoder makes of an image.

    Raises:
        ValueError: if nothing is left of it.
    """
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            _, channels, side, _ = encoder(torch.zeros(1, 3, pixels, pixels)).shape
    except RuntimeError:
        side = 0
    encoder.train(training)
    if not side:
        raise ValueError(f"images of {pixels} pixels are too small for it")
    return channels, side


class GraphEncoder(nn.Module):
    """The encoder of GNN and EGNN: 64, 96, 128 and 256 channels, then 128 features.

    As in both authors' code: the second convolution has no padding, dropout of whole channels (0.4
    and 0.5) behind the last two blocks, a linear layer with BatchNorm at the end.
    """

    features = 128

    def __init__(self, pixels: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            block(3, 64, 1, 0.2),
            block(64, 96, 0, 0.2),
            block(96, 128, 1, 0.2),
            nn.Dropout2d(0.4),
            block(128, 256, 1, 0.2),
            nn.Dropout2d(0.5),
        )
        channels, side = map_size(self.blocks, pixels)
        self.last = nn.Sequential(
            nn.Linear(channels * side**2, self.features), nn.BatchNorm1d(self.features)
        )

    def forward(self, images: Tensor) -> Tensor:
        vectors: Tensor = self.last(self.blocks(images).flatten(1))
        return vectors
