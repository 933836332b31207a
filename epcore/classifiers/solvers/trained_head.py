"""A last layer that is trained anew on the support of each episode (Chen et al. 2019)."""

import math
from abc import abstractmethod
from typing import ClassVar

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.content_order import support_in_order
from epcore.classifiers.solvers.rows import rows_of

MOMENTUM = DAMPENING = 0.9


class TrainedHead(EpisodeClassifier):
    """Scores `W x`; stochastic gradient descent on the mean cross-entropy of small batches.

    Weights start at random and batches are drawn at random, from `seed` and the episode's number.
    """

    needs: ClassVar[Needs] = Needs(frozen_features=True, equal_shots=True)

    epochs: PositiveInt = Field(default=100, description="passes over the support; authors' code")
    batch_size: PositiveInt = Field(default=4, description="images a step; authors' code")
    learning_rate: PositiveFloat = Field(default=0.01, description="authors' code")
    weight_decay: NonNegativeFloat = Field(default=0.001, description="authors' code")
    seed: int = Field(default=0, ge=0, lt=4000, description="of first weights and batches")

    @abstractmethod
    def _inputs(self, points: Tensor) -> Tensor:
        """What the head sees of points `(..., n, D)`: `(..., n, d)`."""

    @abstractmethod
    def _start(self, uniform: Tensor) -> list[Tensor]:
        """Parameters from random weights `(..., way, d)`."""

    @abstractmethod
    def _weights(self, parameters: list[Tensor]) -> Tensor:
        """W `(..., way, d)`."""

    @abstractmethod
    def _gradients(self, parameters: list[Tensor], slope: Tensor) -> list[Tensor]:
        """Gradients of the parameters, from that of W `(..., way, d)`."""

    @torch.no_grad()
    def logits(self, episodes: EpisodeBatch) -> Tensor:
        support, places = support_in_order(episodes)
        inputs, labels = self._inputs(support), episodes.support_labels
        starts, orders = self._draw_starts(episodes, inputs)
        parameters = self._start(starts)
        velocities = [torch.zeros_like(parameter) for parameter in parameters]
        fresh = 1.0  # As in torch, the first gradient is not damped.
        for order in orders.unbind(dim=-2):
            for first in range(0, order.shape[-1], self.batch_size):
                rows = order[..., first : first + self.batch_size]
                batch = rows_of(inputs, rows)
                probabilities = (self._weights(parameters) @ batch.mT).softmax(dim=-2)
                errors = (probabilities - labels[rows].mT) / rows.shape[-1]
                gradients = self._gradients(parameters, errors @ batch)
                for weights, velocity, slope in zip(parameters, velocities, gradients, strict=True):
                    velocity.mul_(MOMENTUM).add_(slope + self.weight_decay * weights, alpha=fresh)
                    weights.sub_(velocity, alpha=self.learning_rate)
                fresh = 1 - DAMPENING
        scores = self._inputs(episodes.query) @ self._weights(parameters).mT
        return torch.take_along_dim(scores, places, dim=-1)

    def _draw_starts(self, episodes: EpisodeBatch, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """First weights `(..., way, d)`, uniform as torch's layers; orders `(..., epochs, n)`."""
        leading, shape = inputs.shape[:-2], (episodes.way, inputs.shape[-1])
        starts, orders = [], []
        for random in episodes.generators(self.seed):
            starts.append(2 * torch.rand(shape, generator=random) - 1)
            orders.append(torch.rand((self.epochs, episodes.labeled), generator=random))
        uniform = torch.stack(starts).reshape(*leading, *shape).to(inputs)
        turns = torch.stack(orders).argsort(dim=-1).reshape(*leading, *orders[0].shape)
        return uniform / math.sqrt(episodes.points.shape[-1]), turns.to(inputs.device)
