"""Relation networks (Sung et al. 2018), ReNet in the paper's table."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods._encoders import block, map_size
from epcore.methods.base import EpisodicMethod, query_classes
from epcore.propagation import at_least_float32, no_autocast

# From this side of the maps on, the relation network's convolutions have no padding.
LARGE_MAP = 10


class RelationNet(EpisodicMethod):
    """A network says how alike a query's map and the sum of a class's support maps are.

    Both maps are stacked to 128 channels. The loss is the mean squared error to 1 for the query's
    class and 0 for others (equation 2). Encoder, relation network and first weights are those of
    the authors' code, whose networks for small images pad where the maps have no room (there
    Omniglot, here all maps below 10x10). Theirs run in training mode in tests as well, so that a
    query depends on the other queries; here they do if the test asks for `batch_statistics`.
    """

    low_precision_scores = True
    episodes_at_once = 4

    def __init__(self, options: EpisodicMethod.Options, pixels: int, way: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            block(3, 64, 0, 0),
            block(64, 64, 0, 0),
            block(64, 64, 1, 0, pool=False),
            block(64, 64, 1, 0, pool=False),
        )
        self.map = map_size(self.encoder, pixels)
        padding = 0 if self.map[1] >= LARGE_MAP else 1
        pairs = nn.Sequential(block(128, 64, padding, 0), block(64, 64, padding, 0))
        side = self.map[1]
        for _ in range(2):
            side = (side - 2 * (1 - padding)) // 2
        if not side:
            raise ValueError(f"images of {pixels} pixels are too small for it")
        self.relation = nn.Sequential(
            pairs, nn.Flatten(), nn.Linear(64 * side**2, 8), nn.ReLU(inplace=True)
        )
        self.last = nn.Linear(8, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                spread = math.sqrt(2 / (9 * module.out_channels))
                nn.init.normal_(module.weight, 0, spread)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
                nn.init.ones_(module.bias)

    def embed(self, images: Tensor) -> Tensor:
        maps: Tensor = self.encoder(images)
        return maps.flatten(1)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        """Relations `(E, queries, way)` before the sigmoid, which changes no order."""
        channels, side = self.map
        sums = episodes.counts[:, None] * episodes.class_means
        shape = (len(sums), episodes.queries, *sums.shape[1:])
        sides = (sums[:, None].expand(shape), episodes.query[:, :, None].expand(shape))
        pairs = torch.stack(sides, dim=-2)
        hidden = self.relation(pairs.reshape(-1, 2 * channels, side, side))
        with no_autocast(pairs):
            relations: Tensor = self.last(at_least_float32(hidden))
        return relations.reshape(len(sums), episodes.queries, episodes.way)

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        expected = functional.one_hot(query_classes(episodes), episodes.way)
        similarities = self.scores(episodes).sigmoid()
        return functional.mse_loss(similarities, expected.to(similarities.dtype))
