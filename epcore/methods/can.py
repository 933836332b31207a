"""Cross attention networks (Hou et al. 2019)."""

from fractions import Fraction

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.base import scaled
from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods._encoders import map_size
from epcore.methods._resnet12 import can_encoder
from epcore.methods.base import EpisodicMethod, query_classes
from epcore.propagation import at_least_float32
from epcore.settings import Ratio, Settings

# Authors' code: of 75 queries the surest 35, then 70, join the support.
JOINING = 35 / 75


class Can(EpisodicMethod):
    """Each pair of a class's map and a query's weighs the positions of both by their similarity.

    A class's map is the mean of its support's. Cosines of all positions of a pair give a weight of
    each position, `1 + softmax(r / temperature)`, where r is the mean of its cosines, weighted by a
    small network of their means (section 4.1). Scores are `scale` times the cosine of the weighted
    means over positions. Training compares each position of a query with the class's weighted mean,
    and classifies the query's weighted map, position by position, among all base classes.

    Where it is transductive, as in the printed row, the queries with the highest scores join the
    support of the class that they are given to, and classes are compared again, twice.
    """

    class Options(Settings):
        """How pairs are weighed and compared."""

        transductive: bool = Field(default=True, description="whether queries join the support")
        temperature: PositiveFloat = Field(default=0.025, description="of the softmax of weights")
        scale: PositiveFloat = Field(default=7.0, description="of the cosines")
        width: Ratio = Field(default=Fraction(1), description="of the channels of the network")

    episodes_at_once = 4

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__()
        self.options = options
        self.transductive = options.transductive
        channels = tuple(scaled(count, options.width) for count in (64, 128, 256, 512))
        self.encoder = can_encoder(channels)
        self.channels, side = map_size(self.encoder, pixels)
        self.base_features = self.channels
        positions, hidden = side**2, max(1, side**2 // 6)
        self.weigh = nn.Sequential(
            nn.Linear(positions, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, positions),
        )
        for layer in self.weigh:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=(2 / layer.out_features) ** 0.5)

    def embed(self, images: Tensor) -> Tensor:
        maps: Tensor = self.encoder(images)
        return maps.flatten(1)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        queries = self._maps(episodes.query)  # (E, q, c, P)
        sums = self._maps(episodes.class_means * episodes.counts[:, None])  # (E, way, c, P)
        scores = self._compared(sums / episodes.counts[:, None, None], queries)
        if not self.options.transductive or self.training:
            return scores
        joining = int(episodes.queries * JOINING)
        for number in range(1, episodes.queries // joining + 1 if joining else 0):
            surest, classes = scores.max(dim=-1)  # (E, q)
            mask = torch.zeros_like(surest).scatter_(
                1, surest.topk(joining * number, dim=-1).indices, 1.0
            )  # 1 for the queries that join
            shares = mask[..., None] * functional.one_hot(classes, episodes.way)  # (E, q, way)
            totals = sums + torch.einsum("eqk,eqcp->ekcp", shares.to(queries.dtype), queries)
            counts = episodes.counts + shares.sum(dim=1)  # (E, way)
            scores = self._compared(totals / counts[..., None, None], queries)
        return scores

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        """Half the cross-entropy of the queries' positions, each compared with all classes."""
        classes, queries = self._maps(episodes.class_means), self._maps(episodes.query)
        of_class, _ = self._attention(classes, queries)
        means = torch.einsum("ekcp,ekqp->eqkc", classes, of_class)
        cosines = torch.einsum(
            "eqcp,eqkc->eqpk",
            functional.normalize(queries, dim=2),
            functional.normalize(means, dim=-1),
        )  # (E, q, P, way)
        expected = query_classes(episodes)[..., None].expand(cosines.shape[:-1])
        logits = at_least_float32(self.options.scale * cosines)
        return 0.5 * functional.cross_entropy(logits.flatten(0, 2), expected.flatten())

    def joint_loss(self, episodes: EpisodeBatch, base_head: nn.Linear, classes: Tensor) -> Tensor:
        labels, queries = query_classes(episodes), self._maps(episodes.query)
        _, of_query = self._attention(self._maps(episodes.class_means), queries)
        index = labels[:, None, :, None].expand(-1, 1, -1, queries.shape[-1])
        weights = of_query.gather(1, index).squeeze(1)  # (E, q, P), beside the query's own class
        positions = (queries * weights[:, :, None]).mT  # (E, q, P, c)
        logits = at_least_float32(base_head(positions))  # (E, q, P, base classes)
        expected = classes.gather(1, labels)[..., None].expand(logits.shape[:-1])
        among_all = functional.cross_entropy(logits.flatten(0, 2), expected.flatten())
        return among_all + self.loss(episodes)

    def _maps(self, points: Tensor) -> Tensor:
        """Maps `(E, n, c, P)`, of P positions, of points `(E, n, c * P)`."""
        return points.reshape(*points.shape[:2], self.channels, -1)

    def _compared(self, classes: Tensor, queries: Tensor) -> Tensor:
        """Scores `(E, q, way)` of classes with maps `(E, way, c, P)` and queries `(E, q, c, P)`."""
        of_class, of_query = self._attention(classes, queries)
        class_means = torch.einsum("ekcp,ekqp->eqkc", classes, of_class)
        query_means = torch.einsum("eqcp,ekqp->eqkc", queries, of_query)
        return self.options.scale * functional.cosine_similarity(class_means, query_means, dim=-1)

    def _attention(self, classes: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Weights `(E, way, q, P)` of the positions of the class and of the query of each pair."""
        cosines = torch.einsum(
            "ekcp,eqcr->ekqpr",
            functional.normalize(classes, dim=2),
            functional.normalize(queries, dim=2),
        )
        return self._weights(cosines), self._weights(cosines.mT)

    def _weights(self, cosines: Tensor) -> Tensor:
        """Weights of positions p from cosines `(E, way, q, p, r)` with the positions r."""
        means = cosines.mean(dim=-2)  # (E, way, q, r)
        weighing = self.weigh(means.flatten(0, 2)).reshape(means.shape)
        relevance: Tensor = (cosines * weighing[..., None, :]).mean(dim=-1)  # (E, way, q, p)
        return (relevance / self.options.temperature).softmax(dim=-1) + 1
