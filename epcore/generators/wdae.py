"""wDAE-GNN: class weights refined by a denoising autoencoder that is a graph network.

Gidaris and Komodakis, "Generating classification weights with GNN denoising autoencoders for
few-shot learning", CVPR 2019, section 3; numbers that the text leaves out are of the authors' code.
The weights of all classes are the nodes of a graph: `(episodes, nodes, D)`.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.generators.base import Task, WeightGenerator, mean_directions
from epcore.generators.config import DenoiserSettings, WeightPropagation
from epcore.propagation import EmbeddingPropagation


def neighborhood(weights: Tensor, temperature: float, neighbors: int) -> tuple[Tensor, Tensor]:
    """Each node's neighbors and their shares, both `(e, nodes, neighbors)`.

    Shares are the largest of the softmax over all other nodes of temperature times cosine, made
    to sum to 1 again. No gradient flows through them.

    Raises:
        ValueError: if there are not so many other nodes.
    """
    if neighbors >= weights.shape[-2]:
        raise ValueError(f"{weights.shape[-2]} class weights have no {neighbors} neighbors each")
    directions = functional.normalize(weights.detach(), dim=-1)
    cosines = temperature * directions @ directions.mT
    itself = torch.eye(cosines.shape[-1], dtype=torch.bool, device=cosines.device)
    shares, nodes = torch.softmax(cosines.masked_fill(itself, -math.inf), dim=-1).topk(neighbors)
    return nodes, shares / shares.sum(dim=-1, keepdim=True)


class Aggregation(nn.Module):
    """Weighted mean of the messages of a node's neighbors.

    The message of node j to node i is LeakyReLU(Dropout(BatchNorm(W x_i + W x_j + 2 b))).
    """

    def __init__(self, inputs: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, hidden)
        self.activation = nn.Sequential(nn.BatchNorm1d(hidden), nn.Dropout(dropout), nn.LeakyReLU())

    def forward(self, x: Tensor, nodes: Tensor, shares: Tensor) -> Tensor:
        """`(e, n, hidden)` of x `(e, n, inputs)` and the neighborhood, each `(e, n, k)`."""
        mapped = self.linear(x)
        episodes = torch.arange(len(x), device=x.device)[:, None, None]
        pairs = mapped[:, :, None] + mapped[episodes, nodes]
        messages = self.activation(pairs.flatten(0, 2)).view_as(pairs)
        message: Tensor = (shares[..., None, :] @ messages).squeeze(-2)
        return message


class Update(nn.Module):
    """The node update of the first layer: the old node beside the unit vector of its message.

    Both are divided by sqrt(2), so that a unit vector stays one.
    """

    def __init__(self, inputs: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs + hidden, hidden, bias=False)
        self.activation = nn.Sequential(nn.BatchNorm1d(hidden), nn.Dropout(dropout), nn.LeakyReLU())

    def forward(self, x: Tensor, message: Tensor) -> Tensor:
        """`(e, n, inputs + hidden)` of x `(e, n, inputs)` and its message `(e, n, hidden)`."""
        mapped = self.linear(torch.cat([x, message], dim=-1))
        new = functional.normalize(self.activation(mapped.flatten(0, 1)).view_as(mapped), dim=-1)
        return torch.cat([x, new], dim=-1) / math.sqrt(2)


class WeightDenoiser(nn.Module):
    """Two graph layers; the second gives each weight a residual and a gate.

    `out = in + sigmoid(gate) * residual / |residual|`. In training noise is added to the input
    weights, which are then made unit vectors again; the graph is always that of the clean ones.
    """

    def __init__(self, settings: DenoiserSettings, feature_size: int) -> None:
        super().__init__()
        self.settings = settings
        hidden = settings.hidden * feature_size
        self.first = Aggregation(feature_size, hidden, settings.dropout)
        self.update = Update(feature_size, hidden, settings.dropout)
        self.second = Aggregation(feature_size + hidden, hidden, settings.dropout)
        self.last = nn.Linear(feature_size + 2 * hidden, 2 * feature_size)

    def forward(self, weights: Tensor) -> Tensor:
        """Denoised weights `(e, n, D)` of unit vectors `(e, n, D)`."""
        graph = neighborhood(weights, self.settings.temperature, self.settings.neighbors)
        if self.training and self.settings.noise:
            noisy = weights + self.settings.noise * torch.randn_like(weights)
            weights = functional.normalize(noisy, dim=-1)
        x = self.update(weights, self.first(weights, *graph))
        out = self.last(torch.cat([x, self.second(x, *graph)], dim=-1))
        residual, gate = out.chunk(2, dim=-1)
        return weights + torch.sigmoid(gate) * functional.normalize(residual, dim=-1)


class WdaeGenerator(WeightGenerator):
    """Pretrained base weights and mean exemplars, through the denoiser; then EP, if asked for.

    The denoiser alone is trained, and the scale. `step_size` goes that part of the way from the
    input weights to the denoised ones, made unit vectors first; 1 takes the denoised ones as they
    are. Where embedding propagation stands is `WeightPropagation`'s to say.
    """

    base_weights: Tensor

    def __init__(
        self,
        settings: DenoiserSettings,
        base_weights: Tensor,
        scale: Tensor,
        propagation: WeightPropagation | None,
    ) -> None:
        super().__init__(scale)
        self.register_buffer("base_weights", base_weights.detach().clone())
        self.denoiser = WeightDenoiser(settings, base_weights.shape[1])
        self.propagation = propagation
        self.layer = EmbeddingPropagation(propagation.alpha) if propagation else None

    def forward(self, task: Task, step_size: float = 1.0) -> Tensor:
        inputs, denoised = self._denoise(task)
        if self.propagation is not None and self.propagation.step == "before":
            return _step(inputs, self._propagate(denoised, task), step_size)
        return self._propagate(_step(inputs, denoised, step_size), task)

    def weights_and_penalty(self, task: Task, novel: Tensor) -> tuple[Tensor, Tensor]:
        """The penalty is the reconstruction loss: mean squared distance of unit vectors."""
        _, denoised = self._denoise(task)
        weights = self._propagate(denoised, task)
        before = self.propagation is not None and self.propagation.reconstruction == "generated"
        targets = self.base_weights[torch.cat([task.base, novel], dim=-1)]
        reconstructed, target = (
            functional.normalize(vectors, dim=-1)
            for vectors in (denoised if before else weights, targets)
        )
        penalty = (reconstructed - target).square().sum(dim=-1).mean()
        return weights, self.denoiser.settings.reconstruction_weight * penalty

    def _denoise(self, task: Task) -> tuple[Tensor, Tensor]:
        """Input weights, unit vectors, and denoised ones, both `(e, b + n, D)`."""
        weights = [self.base_weights[task.base], mean_directions(task.exemplars)]
        inputs = functional.normalize(torch.cat(weights, dim=-2), dim=-1)
        return inputs, self.denoiser(inputs)

    def _propagate(self, weights: Tensor, task: Task) -> Tensor:
        if self.propagation is None or self.layer is None:
            return weights
        if self.propagation.normalize_weights:
            weights = functional.normalize(weights, dim=-1)
        if self.propagation.nodes == "all":
            propagated: Tensor = self.layer(weights)
            return propagated
        base = task.base.shape[-1]
        return torch.cat([weights[:, :base], self.layer(weights[:, base:])], dim=-2)


def _step(inputs: Tensor, outputs: Tensor, size: float) -> Tensor:
    """Input weights moved towards the outputs' unit vectors; the outputs for `size` 1."""
    if size == 1:
        return outputs
    return inputs + size * (functional.normalize(outputs, dim=-1) - inputs)
