"""Few-shot learning with graph neural networks (Garcia and Bruna 2018)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods._encoders import GraphEncoder
from epcore.methods._pairs import PairNetwork
from epcore.methods.base import EpisodicMethod
from epcore.propagation import at_least_float32, no_autocast

LAYERS, ADDED = 2, 48  # hidden layers, and the features that each adds to the nodes


class _Layer(nn.Module):
    """Nodes and their neighbors' mean by a learned adjacency, through one linear map."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.pairs = PairNetwork(features, bias=True)
        self.linear = nn.Linear(2 * features, outputs)

    def forward(self, nodes: Tensor, values: Tensor | None = None) -> Tensor:
        """`(B, N, outputs)` from nodes `(B, N, F)`, and the pairs' values if they are known."""
        itself = torch.eye(nodes.shape[1], dtype=torch.bool, device=nodes.device)
        values = self.pairs(nodes) if values is None else values
        return self._mix(nodes, values.masked_fill(itself, -torch.inf), nodes)

    def last_node(self, nodes: Tensor) -> Tensor:
        """What the last node alone becomes: `(B, outputs)`."""
        earlier, last = nodes[:, :-1], nodes[:, -1:]
        return self._mix(last, self.pairs.between(earlier, last)[:, None], earlier)[:, 0]

    def _mix(self, nodes: Tensor, values: Tensor, neighbors: Tensor) -> Tensor:
        mean = values.softmax(dim=-1).to(nodes.dtype) @ neighbors
        with no_autocast(nodes):
            outputs: Tensor = self.linear(at_least_float32(torch.cat([nodes, mean], dim=-1)))
        return outputs


class Gnn(EpisodicMethod):
    """Graph convolutions over the support and one query (sections 4 and 5).

    A node holds an image's 128 features and its one-hot class, zeros if that is not known. A
    layer learns an adjacency from the differences of nodes, softmax over the neighbors, and adds 48
    features to each node; the last one gives the query's logits. Each query has a graph of its own,
    so that it is classified by itself. All as in the authors' code, which has 1,619,194 parameters
    at 84 pixels and 5 classes.
    """

    low_precision_scores = True
    unlabeled = True
    episodes_at_once = 2
    least_tasks = 2

    def __init__(self, options: EpisodicMethod.Options, pixels: int, way: int) -> None:
        super().__init__()
        self.way = way
        self.encoder = GraphEncoder(pixels)
        features = self.encoder.features + way
        self.layers = nn.ModuleList(
            _Layer(features + ADDED * number, ADDED) for number in range(LAYERS)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(ADDED) for _ in range(LAYERS))
        self.last = _Layer(features + ADDED * LAYERS, way)

    def embed(self, images: Tensor) -> Tensor:
        vectors: Tensor = self.encoder(images)
        return vectors

    def embed_step(self, images: Tensor, labeled: int) -> Tensor:
        """Each position of the graphs is a batch of its own, as in the authors' code (main.py:93).

        The query is one position, whichever of an episode's queries a graph has.
        """
        support = [self.encoder(images[:, position]) for position in range(labeled)]
        queries = self.encoder(images[:, labeled:].flatten(0, 1)).unflatten(0, (len(images), -1))
        return torch.cat([torch.stack(support, dim=1), queries], dim=1)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        points = torch.cat([episodes.points, episodes.node_labels], dim=-1)
        nodes = alone(points, episodes)
        # With running statistics a pair's value depends on no other pair: graphs share those of
        # their support, and the last layer makes those of the queries alone.
        shared = None
        running = not self.norms[0].training
        if running:
            shared = alone_pairs(self.layers[0].get_submodule("pairs")(points), episodes)
        for layer, norm, values in zip(self.layers, self.norms, (shared, None), strict=True):
            added = layer(nodes, values)
            normed = norm(added.flatten(0, 1)).reshape(added.shape)
            nodes = torch.cat([nodes, at_least_float32(functional.leaky_relu(normed))], dim=-1)
        logits: Tensor = self.last.last_node(nodes) if running else self.last(nodes)[:, -1]
        return logits.reshape(len(episodes.points), episodes.queries, self.way)


def alone(nodes: Tensor, episodes: EpisodeBatch) -> Tensor:
    """A graph for each query: its support, its unlabeled images, and the query as the last node.

    `(E * queries, N - queries + 1, F)` from `(E, N, F)`.
    """
    return nodes[:, _of_graphs(episodes)].flatten(0, 1)


def alone_pairs(values: Tensor, episodes: EpisodeBatch) -> Tensor:
    """Values of pairs for graphs with one query each: `(E * queries, n, n)` from `(E, N, N)`."""
    numbers = _of_graphs(episodes)
    return values[:, numbers[:, :, None], numbers[:, None]].flatten(0, 1)


def _of_graphs(episodes: EpisodeBatch) -> Tensor:
    """Which of an episode's points are the nodes of each query's graph, `(queries, n)`."""
    numbers = torch.arange(episodes.points.shape[1], device=episodes.points.device)
    labeled, queries = episodes.labeled, episodes.queries
    shared = torch.cat([numbers[:labeled], numbers[labeled + queries :]]).expand(queries, -1)
    return torch.cat([shared, numbers[labeled : labeled + queries, None]], dim=1)
