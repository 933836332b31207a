"""TADAM (Oreshkin et al. 2018): scaled distances, and features that depend on the task."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import cast

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.base import scaled
from epcore.classifiers.episodes import EpisodeBatch
from epcore.methods._resnet12 import ResidualBlock, draw_by_outputs
from epcore.methods.base import query_classes
from epcore.methods.protonets_plus_plus import ProtoNetsPlusPlus
from epcore.propagation import at_least_float32
from epcore.settings import Ratio

# Authors' code: the share of steps with the auxiliary task falls by a tenth, this many times.
FALLS, FALL = 20, 0.9
STRENGTH_DECAY = 0.01  # of the strengths of the conditioning, beside that of all weights


class Tadam(ProtoNetsPlusPlus):
    """ProtoNets++ whose every convolution is scaled and shifted as the task asks (section 2.2).

    The task is the mean of the class means of the support. For each convolution two networks turn
    it into a factor `1 + gamma` and an offset `beta` of each channel; both begin at 0. Support and
    queries are embedded with these, and scores are minus `scale` times the distance.

    Its "embeddings" are the pixels, as features depend on the episode. Training also classifies
    images among all base classes, ever more rarely (section 2.4): here those of the episodes'
    queries, in the same step; in the authors' code other images, in a step before.
    """

    class Options(ProtoNetsPlusPlus.Options):
        """The distance's scale, and how long the auxiliary task is trained."""

        width: Ratio = Field(default=Fraction(1), description="of the channels of the network")
        scale: PositiveFloat = Field(default=7.5, description="of the distances")
        auxiliary_steps: PositiveInt = Field(
            default=30_000,
            description="over which the share of steps with the auxiliary task falls to an eighth",
        )

    low_precision_scores = True
    episodes_at_once = 4
    steps: Tensor

    def __init__(self, options: Options, pixels: int, way: int) -> None:
        super().__init__(options, pixels, way)
        self.options, self.pixels = options, pixels
        channels = [scaled(count, options.width) for count in (64, 128, 256, 512)]
        self.base_features = channels[-1]
        of_convolutions = [count for count in channels for _ in range(3)]  # three to a block
        self.factors, self.offsets = (
            nn.ModuleList(Condition(channels[-1], count) for count in of_convolutions)
            for _ in ("gamma", "beta")
        )
        self.register_buffer("steps", torch.zeros(()))  # a float: checkpoints hold no integers

    def embed(self, images: Tensor) -> Tensor:
        return images.flatten(1)

    def embed_step(self, images: Tensor, labeled: int) -> Tensor:
        return images.flatten(2)

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        distances = super().scores(replace(episodes, points=self._features(episodes)))
        return self.options.scale * distances

    def loss(self, episodes: EpisodeBatch) -> Tensor:
        strengths = torch.stack(
            [condition.strength for condition in (*self.factors, *self.offsets)]
        )
        return super().loss(episodes) + STRENGTH_DECAY / 2 * strengths.square().sum()

    def joint_loss(self, episodes: EpisodeBatch, base_head: nn.Linear, classes: Tensor) -> Tensor:
        share = auxiliary_share(int(self.steps), self.options.auxiliary_steps)
        self.steps += 1
        loss = self.loss(episodes)
        if torch.rand(()) >= share:
            return loss
        images = self._images(episodes.query.flatten(0, 1))
        expected = classes.gather(1, query_classes(episodes)).flatten()
        logits = at_least_float32(base_head(super().embed(images)))
        return loss + functional.cross_entropy(logits, expected)

    def _images(self, points: Tensor) -> Tensor:
        return points.reshape(-1, 3, self.pixels, self.pixels)

    def _features(self, episodes: EpisodeBatch) -> Tensor:
        """Features `(E, N, D)` of all images, under the conditions of their episode."""
        count = len(episodes.points)
        support = self._images(episodes.support.flatten(0, 1))
        plain = super().embed(support).reshape(count, episodes.labeled, -1)
        labeled = replace(episodes, points=plain, queries=0)
        task = labeled.class_means.mean(dim=1)  # (E, D)
        conditions = [
            (1 + factor(task), offset(task))
            for factor, offset in zip(self.factors, self.offsets, strict=True)
        ]  # each (E, channels)
        queries = self._images(episodes.query.flatten(0, 1))
        return torch.cat(
            [
                self._embed_with(support, conditions).reshape(count, episodes.labeled, -1),
                self._embed_with(queries, conditions).reshape(count, episodes.queries, -1),
            ],
            dim=1,
        )

    def _embed_with(self, images: Tensor, conditions: list[tuple[Tensor, Tensor]]) -> Tensor:
        """Features of the images `(E * n, 3, h, w)`, the n of an episode after one another."""
        maps, next_conditions = images, iter(conditions)
        for block in self.encoder:
            maps = with_conditions(cast(ResidualBlock, block), maps, next_conditions)
        return at_least_float32(maps).mean(dim=(-2, -1))


class Condition(nn.Module):
    """Task `(E, D)` to a number of each channel `(E, channels)`, times a strength that begins at 0.

    Three linear layers, of which the last two have shortcuts.
    """

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, channels)
        self.second = nn.Linear(channels, channels)
        self.third = nn.Linear(channels, channels)
        draw_by_outputs(self, 0.2)
        self.strength = nn.Parameter(torch.zeros(()))

    def forward(self, task: Tensor) -> Tensor:
        values: Tensor = functional.silu(self.first(task))
        values = functional.silu(self.second(values) + values)
        values = self.third(values) + values
        return self.strength * values


def with_conditions(
    block: ResidualBlock, maps: Tensor, conditions: Iterator[tuple[Tensor, Tensor]]
) -> Tensor:
    """What a block makes of maps `(E * n, c, h, w)`, with a condition behind each BatchNorm.

    conditions: factors and offsets `(E, channels)` of each convolution in turn.
    """
    values = maps
    for layer in block.path:
        values = layer(values)
        if isinstance(layer, nn.Sequential):  # a convolution and its BatchNorm
            factor, offset = (
                numbers.repeat_interleave(len(maps) // len(numbers), dim=0)[..., None, None]
                for numbers in next(conditions)
            )
            values = factor * values + offset
    pooled: Tensor = block.pool(block.activation(values + block.shortcut(maps)))
    return pooled


def auxiliary_share(step: int, steps: int) -> float:
    """The share of steps that train the auxiliary task as well, at this step of so many.

    As in the authors' code; the paper's exponent is one less.
    """
    return float(FALL ** (step * FALLS // steps + 1))
