"""What every generator of class weights has, and the one that learns nothing."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from epcore.backbones.cosine import cosine_logits


@dataclass(frozen=True)
class Task:
    """Episodes that need weights of all their classes.

    base: positions of base classes `(episodes, b)`; exemplars: features `(episodes, n, K, D)` of
    the novel classes; trials: of a test, the number of each episode's draw of exemplars.
    """

    base: Tensor
    exemplars: Tensor
    trials: tuple[int, ...] = ()


class WeightGenerator(nn.Module, ABC):
    """Maps a task to weights `(episodes, b + n, D)`, base classes first.

    scale: of the cosine classifier that uses them; it goes on learning from pretraining.
    trials_at_once: how many trials of a test are the episodes of one task.
    """

    trials_at_once: ClassVar[int] = 1

    def __init__(self, scale: Tensor) -> None:
        super().__init__()
        self.scale = nn.Parameter(scale.detach().clone())

    @abstractmethod
    def forward(self, task: Task, step_size: float = 1.0) -> Tensor:
        """`step_size` is how far to go from the input weights to the generated ones, up to 1."""

    def logits(self, features: Tensor, weights: Tensor) -> Tensor:
        """Of queries' features `(..., n, D)` and the weights `(..., C, D)` of classes."""
        return cosine_logits(features, weights, self.scale)

    def weights_and_penalty(self, task: Task, novel: Tensor) -> tuple[Tensor, Tensor]:
        """For training: the weights, and a loss to add to that of the classification.

        novel: which base classes the novel classes of the task really are `(episodes, n)`.
        """
        weights = self(task)
        return weights, weights.new_zeros(())


class ClassMeansGenerator(WeightGenerator):
    """Base weights as pretraining left them, and for novel classes the mean of the exemplars.

    The mean is of their unit vectors, as in the code of CC+Rot (github.com/valeoai/BF3S).
    """

    base_weights: Tensor

    def __init__(self, base_weights: Tensor, scale: Tensor) -> None:
        super().__init__(scale)
        self.register_buffer("base_weights", base_weights.detach().clone())

    def forward(self, task: Task, step_size: float = 1.0) -> Tensor:
        weights = [self.base_weights[task.base], mean_directions(task.exemplars)]
        return torch.cat(weights, dim=-2)


def mean_directions(exemplars: Tensor) -> Tensor:
    """Mean of the unit vectors of K exemplars: `(..., n, D)` of `(..., n, K, D)`."""
    return functional.normalize(exemplars, dim=-1).mean(dim=-2)
