"""Edge-labeling graph neural networks (Kim et al. 2019)."""

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods._encoders import GraphEncoder
from epcore.methods._pairs import PairNetwork, perceptron
from epcore.methods.base import EpisodicMethod, query_classes
from epcore.methods.gnn import alone
from epcore.propagation import at_least_float32, no_autocast
from epcore.settings import Settings

FEATURES = 96
LAYER_WEIGHTS = (0.5, 0.5, 1.0)  # of the losses of the three rounds (authors' code)
EDGE_OFFSET = 1e-6


class _Round(nn.Module):
    """Updates the nodes from the edges, then the edges from the nodes."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.nodes = perceptron((3 * features, 2 * FEATURES, FEATURES), bias=False)
        self.pairs = PairNetwork(FEATURES, bias=False)

    def forward(self, nodes: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes `(B, N, F)` and edges `(B, 2, N, N)` to nodes `(B, N, 96)` and edges."""
        shares = functional.normalize(without_diagonal(edges), p=1, dim=-1)
        like, unlike = (shares @ nodes[:, None]).unbind(dim=1)
        inputs = torch.cat([nodes, like, unlike], dim=-1)
        moved = at_least_float32(self.nodes(inputs.flatten(0, 1))).reshape(*inputs.shape[:2], -1)
        return moved, updated_edges(edges, self.pairs(moved).sigmoid())


def without_diagonal(edges: Tensor) -> Tensor:
    """Edges `(..., N, N)` with zeros from each node to itself."""
    return edges * (1 - torch.eye(edges.shape[-1], dtype=edges.dtype, device=edges.device))


def updated_edges(edges: Tensor, similar: Tensor) -> Tensor:
    """The edge update (equations 5 to 7, as in the authors' code).

    Edges `(B, 2, N, N)`: how similar, and how dissimilar, two nodes are. The old values are
    multiplied with `similar` `(B, N, N)` and `1 - similar`, scaled so that each node's edges add up
    to what they did before, and the two values of an edge to 1.
    """
    old = without_diagonal(edges)
    both_kinds = torch.stack([similar, 1 - similar], dim=1)
    new = functional.normalize(both_kinds * old, p=1, dim=-1) * old.sum(dim=-1, keepdim=True)
    itself = torch.eye(edges.shape[-1], dtype=edges.dtype, device=edges.device)
    new = new + torch.stack([itself, torch.zeros_like(itself)]) + EDGE_OFFSET
    return new / new.sum(dim=1, keepdim=True)


class Egnn(EpisodicMethod):
    """Three rounds of node and edge updates; a query's class is that of the most similar support.

    Edges begin with what labels say: 1 and 0 between images of one class, 0 and 1 between those of
    two, a half where a label is not known. The loss is the binary cross-entropy of the edges at
    queries, equal and different pairs with equal weight, averaged over the rounds, of which the
    last counts twice.

    With `transductive` all queries share one graph. Nothing depends on the order of the images.
    """

    class Options(Settings):
        """Settings of the graph."""

        transductive: bool = Field(
            default=True, description="whether the queries of an episode share one graph"
        )

    low_precision_scores = True
    unlabeled = True
    episodes_at_once = 8
    least_tasks = 2

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__()
        self.transductive = options.transductive
        if not self.transductive:
            self.episodes_at_once = 2
        self.encoder = GraphEncoder(pixels)
        self.rounds = nn.ModuleList(
            _Round(features) for features in (self.encoder.features, FEATURES, FEATURES)
        )

    def embed(self, images: Tensor) -> Tensor:
        vectors: Tensor = self.encoder(images)
        return vectors

    def embed_step(self, images: Tensor, labeled: int) -> Tensor:
        """Each position of the graphs is a batch of its own (authors' code, train.py:106)."""
        points = [self.encoder(images[:, position]) for position in range(images.shape[1])]
        return torch.stack(points, dim=1)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        similar, labels, query_nodes = self._rounds(episodes)
        with no_autocast(labels):
            votes = (similar[-1] @ labels)[:, query_nodes]
        return votes.reshape(len(episodes.points), episodes.queries, episodes.way)

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        similar, labels, query_nodes = self._rounds(episodes)
        with no_autocast(labels):
            return self._loss(episodes, similar, labels, query_nodes)

    def _loss(
        self, episodes: EpisodeBatch, similar: list[Tensor], labels: Tensor, query_nodes: slice
    ) -> Tensor:
        queries = functional.one_hot(query_classes(episodes), episodes.way).to(labels.dtype)
        labels = labels.clone()
        labels[:, query_nodes] = (
            queries if self.transductive else queries.reshape(-1, 1, episodes.way)
        )
        equal = labels @ labels.mT
        # In one graph a query's pair with itself counts, as in the authors' code.
        mask = torch.ones_like(equal)
        mask = mask if self.transductive else without_diagonal(mask)
        mask[:, : query_nodes.start, : query_nodes.start] = 0
        total = labels.new_zeros(())
        for weight, similarity in zip(LAYER_WEIGHTS, similar, strict=True):
            errors = functional.binary_cross_entropy(
                similarity.clamp(0, 1), equal, reduction="none"
            )
            for pairs in (mask * equal, mask * (1 - equal)):
                total = total + weight * (errors * pairs).sum() / pairs.sum().clamp(min=1)
        return total / len(similar)

    def _rounds(self, episodes: EpisodeBatch) -> tuple[list[Tensor], Tensor, slice]:
        """Similarities `(B, N, N)` after each round, labels `(B, N, way)`, and where queries are.

        Queries are the last nodes.
        """
        graphs_of = last if self.transductive else alone
        nodes, labels = (
            graphs_of(values, episodes) for values in (episodes.points, episodes.node_labels)
        )
        query_nodes = slice(nodes.shape[1] - (episodes.queries if self.transductive else 1), None)
        edges = initial_edges(labels)
        similar = []
        for layer in self.rounds:
            nodes, edges = layer(nodes, edges)
            similar.append(edges[:, 0])
        return similar, labels, query_nodes


def last(nodes: Tensor, episodes: EpisodeBatch) -> Tensor:
    """Nodes `(E, N, F)` with the queries behind the unlabeled images."""
    labeled, queries = episodes.labeled, episodes.queries
    parts = (nodes[:, :labeled], nodes[:, labeled + queries :], nodes[:, labeled:][:, :queries])
    return torch.cat(parts, dim=1)


def initial_edges(labels: Tensor) -> Tensor:
    """Edges `(B, 2, N, N)` from one-hot labels `(B, N, way)` with zeros where none is known."""
    labeled = labels.sum(dim=-1)
    pairs = labeled[:, :, None] * labeled[:, None, :]
    similar = labels @ labels.mT * pairs + 0.5 * (1 - pairs)
    itself = torch.eye(labels.shape[1], dtype=torch.bool, device=labels.device)
    similar = similar.masked_fill(itself, 1)
    return torch.stack([similar, 1 - similar], dim=1)
