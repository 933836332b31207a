"""A network over all pairs of an episode's images, as GNN and EGNN have it."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from epcore.propagation import at_least_float32, no_autocast


def perceptron(widths: Sequence[int], bias: bool) -> nn.Sequential:
    """Linear layers from each width to the next, each with BatchNorm and leaky ReLU."""
    return nn.Sequential(
        *(
            nn.Sequential(
                nn.Linear(inputs, outputs, bias=bias),
                nn.BatchNorm1d(outputs),
                nn.LeakyReLU(0.01, inplace=True),
            )
            for inputs, outputs in pairwise(widths)
        )
    )


class PairNetwork(nn.Module):
    """One number for each pair of nodes, from the absolute difference of their features.

    Four layers of 192, 192, 96 and 96 channels with BatchNorm and leaky ReLU, then one channel. The
    number is the same for (i, j) and (j, i), so that each pair is computed once. BatchNorm in the
    codes of GNN and EGNN also counts the differences of nodes with themselves, which are zero.
    """

    widths = (192, 192, 96, 96)

    def __init__(self, features: int, bias: bool) -> None:
        super().__init__()
        self.layers = perceptron((features, *self.widths), bias)
        self.last = nn.Linear(self.widths[-1], 1)

    def forward(self, nodes: Tensor) -> Tensor:
        """Symmetric `(B, N, N)`, zero on the diagonal, from nodes `(B, N, F)`."""
        batch, count, _ = nodes.shape
        first, second = torch.triu_indices(count, count, offset=1, device=nodes.device)
        values = self.between(nodes[:, first], nodes[:, second])
        upper = values.new_zeros(batch, count, count)
        upper[:, first, second] = values
        return upper + upper.mT

    def between(self, first: Tensor, second: Tensor) -> Tensor:
        """`(B, M)` from the nodes of M pairs, `(B, M, F)` or what broadcasts to it."""
        differences = (first - second).abs()
        hidden = self.layers(differences.flatten(0, 1))
        with no_autocast(first):
            values: Tensor = self.last(at_least_float32(hidden)).reshape(differences.shape[:2])
        return values
