"""LwoF's few-shot weight generator (Gidaris and Komodakis, CVPR 2018, section 3.1)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.generators.base import Task, WeightGenerator, mean_directions
from epcore.generators.config import LwofAttention, LwofAverage


class Attention(nn.Module):
    """Base weights that exemplars attend to (equations 7 and 8).

    `w_att = mean_i sum_b softmax_b(gamma cos(phi_q z_i, k_b)) w_b` over K exemplars z_i, with a
    learned linear map phi_q that starts near the identity, a learned key k_b for each base class
    and a learned gamma.
    """

    def __init__(self, classes: int, feature_size: int, scale: float) -> None:
        super().__init__()
        self.query = nn.Linear(feature_size, feature_size)
        with torch.no_grad():
            self.query.weight.copy_(
                torch.eye(feature_size) + 0.001 * torch.randn(feature_size, feature_size)
            )
            self.query.bias.zero_()
        self.keys = nn.Parameter(torch.randn(classes, feature_size) * math.sqrt(2 / feature_size))
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def forward(self, directions: Tensor, base: Tensor, weights: Tensor) -> Tensor:
        """`(e, n, D)` of exemplars' unit vectors `(e, n, K, D)`, base classes `(e, b)` and weights
        `(e, b, D)`.
        """
        queries = functional.normalize(self.query(directions), dim=-1)
        keys = functional.normalize(self.keys[base], dim=-1)
        cosines = torch.einsum("enkd,ebd->enkb", queries, keys)
        attention = torch.softmax(self.scale * cosines, dim=-1)
        return torch.einsum("enb,ebd->end", attention.mean(dim=-2), weights)


class LwofGenerator(WeightGenerator):
    """Novel weights `phi_avg * w_avg + phi_att * w_att` (equation 6), base weights as learned.

    w_avg is the mean of the exemplars' unit vectors, phi_avg and phi_att are learned vectors that
    start at one. Without attention the second term is left out. The base weights go on learning
    (section 3.3). No feature is dropped: the dropout of 0.5 in the cited code's settings is of a
    network in evaluation mode, where it never acts.
    """

    def __init__(
        self, settings: LwofAverage | LwofAttention, base_weights: Tensor, scale: Tensor
    ) -> None:
        super().__init__(scale)
        classes, size = base_weights.shape
        self.base_weights = nn.Parameter(base_weights.detach().clone())
        self.average_gain = nn.Parameter(torch.ones(size))
        self.attention: Attention | None = None
        if isinstance(settings, LwofAttention):
            self.attention = Attention(classes, size, settings.attention_scale)
            self.attention_gain = nn.Parameter(torch.ones(size))

    def forward(self, task: Task, step_size: float = 1.0) -> Tensor:
        base = self.base_weights[task.base]
        novel = self.average_gain * mean_directions(task.exemplars)
        if self.attention is not None:
            directions = functional.normalize(task.exemplars, dim=-1)
            attended = self.attention(directions, task.base, functional.normalize(base, dim=-1))
            novel = novel + self.attention_gain * attended
        return torch.cat([base, novel], dim=-2)
