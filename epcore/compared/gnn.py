"""Few-shot learning with graph neural networks (Garcia and Bruna 2018)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers import EpisodeBatch
from epcore.compared import EpisodicMethod, exact, node_labels, whole
from epcore.compared._encoders import GraphEncoder
from epcore.compared._pairs import PairNetwork

LAYERS, ADDED = 2, 48  # hidden layers, and the features that each adds to the nodes


class _Layer(nn.Module):
    """Nodes and their neighbors' mean by a learned adjacency, through one linear map."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.pairs = PairNetwork(features, bias=True)
        self.linear = nn.Linear(2 * features, outputs)

    def forward(self, nodes: Tensor) -> Tensor:
        alone = torch.eye(nodes.shape[1], dtype=torch.bool, device=nodes.device)
        adjacency = self.pairs(nodes).masked_fill(alone, -torch.inf).softmax(dim=-1)
        neighbors = adjacency.to(nodes.dtype) @ nodes
        both = torch.cat([nodes, neighbors], dim=-1)
        with exact(nodes):
            outputs: Tensor = self.linear(whole(both))
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

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        nodes = alone(torch.cat([episodes.points, node_labels(episodes)], dim=-1), episodes)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            added = layer(nodes)
            normed = norm(added.flatten(0, 1)).reshape(added.shape)
            nodes = torch.cat([nodes, whole(functional.leaky_relu(normed))], dim=-1)
        logits: Tensor = self.last(nodes)[:, -1]
        return logits.reshape(len(episodes.points), episodes.queries, self.way)


def alone(nodes: Tensor, episodes: EpisodeBatch) -> Tensor:
    """A graph for each query: its support, its unlabeled images, and the query as the last node.

    `(E * queries, N - queries + 1, F)` from `(E, N, F)`.
    """
    labeled, queries = episodes.labeled, episodes.queries
    known = torch.cat([nodes[:, :labeled], nodes[:, labeled + queries :]], dim=1)
    known = known[:, None].expand(-1, queries, -1, -1)
    asked = nodes[:, labeled : labeled + queries, None]
    return torch.cat([known, asked], dim=2).flatten(0, 1)


METHOD = Gnn
