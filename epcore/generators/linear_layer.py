"""The low-shot phase of Batch SGM: a linear layer of all classes, trained anew for each trial.

Hariharan and Girshick, "Low-shot visual recognition by shrinking and hallucinating features",
ICCV 2017; what the text leaves out is of the authors' code
(github.com/facebookresearch/low-shot-shrink-hallucinate, low_shot.py).
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from epcore.generators.base import Task, WeightGenerator
from epcore.generators.config import LinearLayer


@dataclass(frozen=True)
class BaseImages:
    """What a layer learns base classes from.

    features: of images `(images, D)`; classes: positions among all base classes `(images,)`.
    """

    features: Tensor
    classes: Tensor


class LinearLayerGenerator(WeightGenerator):
    """Weights `(episodes, b + n, D + 1)` of a linear layer; the last column is its bias.

    The layer starts as torch's `nn.Linear` and is trained by SGD on the cross-entropy of batches of
    features. A batch has base and novel images in proportion to the numbers of their classes, drawn
    uniformly from all images of `base` and from all exemplars. A base class that has no image in
    `base` has weights, but is no image's class.

    What a trial draws depends on the seed, K and the trial's number alone.
    """

    trials_at_once = 10

    def __init__(self, settings: LinearLayer, base: BaseImages, seed: int) -> None:
        super().__init__(base.features.new_ones(()))  # not used: logits have no scale
        self.settings, self.seed = settings, seed
        self.images, self.classes = _with_ones(base.features), base.classes
        self.classes_with_images = int(base.classes.bincount().count_nonzero())

    def forward(self, task: Task, step_size: float = 1.0) -> Tensor:
        settings, device = self.settings, task.exemplars.device
        episodes, novel, shots, size = task.exemplars.shape
        base = task.base.shape[-1]
        share = self.classes_with_images / (self.classes_with_images + novel)
        base_images = round(share * settings.batch_size)
        rngs = [np.random.default_rng([self.seed, shots, trial]) for trial in task.trials]

        def draw(count: int, limit: int) -> Tensor:
            numbers = np.stack([rng.integers(limit, size=count) for rng in rngs])
            return torch.from_numpy(numbers).to(device)  # (e, count)

        bound = size**-0.5
        first = [rng.uniform(-bound, bound, (base + novel, size + 1)) for rng in rngs]
        weights = torch.from_numpy(np.stack(first)).to(task.exemplars)  # (e, C, D + 1)
        velocity = None
        exemplars = _with_ones(task.exemplars.flatten(1, 2))  # (e, n * K, D + 1)
        episode = torch.arange(episodes, device=device)[:, None]
        position = torch.arange(settings.batch_size, device=device)
        for _ in range(settings.iterations):
            of_base = draw(base_images, len(self.images))
            of_novel = draw(settings.batch_size - base_images, novel * shots)
            x = torch.cat([self.images[of_base], exemplars[episode, of_novel]], dim=1)
            y = torch.cat([self.classes[of_base], base + of_novel // shots], dim=1)  # (e, B)
            errors = torch.softmax(x @ weights.mT, dim=-1)  # (e, B, C)
            errors[episode, position, y] -= 1
            gradient = errors.mT @ x / settings.batch_size + settings.weight_decay * weights
            # The dampening is the momentum; torch's SGD does not dampen the first step.
            velocity = gradient if velocity is None else gradient.lerp(velocity, settings.momentum)
            weights = weights - settings.learning_rate * velocity
        return weights

    def logits(self, features: Tensor, weights: Tensor) -> Tensor:
        return _with_ones(features) @ weights.mT


def _with_ones(features: Tensor) -> Tensor:
    """Features `(..., D + 1)` whose last number is one, for the bias."""
    return functional.pad(features, (0, 1), value=1.0)
