"""TransMatch (Yu et al. 2020) on frozen features: only the last layer is tuned."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from epcore.classifiers.base import EpisodeClassifier, Needs
from epcore.classifiers.episodes import EpisodeBatch
from epcore.classifiers.solvers.content_order import in_order, support_in_order
from epcore.classifiers.solvers.rows import rows_of

# Images of a step. The authors take 16 unlabeled images in two augmented views; here an image has
# one view, and there are 32.
LABELED, UNLABELED = 16, 32
MOMENTUM = 0.9
# Steps whose draws are made at once: an epoch of the authors' code.
AT_ONCE = 64


@dataclass(frozen=True)
class _Draw:
    """The random draw of a step: rows of images, the partner of each image, and mixing weights.

    rows `(..., 48)`; partners and their inverse `(..., 1, 48)`; share of an image in its mixture
    `(..., 1, 1)`; lengths of the mixtures `(..., 1, 48)`.
    """

    rows: Tensor
    partners: Tensor
    inverse: Tensor
    share: Tensor
    lengths: Tensor

    def mixed(self, values: Tensor) -> Tensor:
        """Values `(..., way, 48)`, each with that of its partner."""
        partner = values.gather(-1, self.partners.expand_as(values))
        return self.share * values + (1 - self.share) * partner

    def unmixed(self, slope: Tensor) -> Tensor:
        """The gradient of values from that of `mixed(values)`."""
        partner = slope.gather(-1, self.inverse.expand_as(slope))
        return self.share * slope + (1 - self.share) * partner


class TransMatchHead(EpisodeClassifier):
    """A cosine layer that starts at the class means and is tuned by MixMatch.

    Scores of a query are `scale * cosine(x, w_k)`. Each step guesses the class distributions of
    unlabeled images, sharpens them, and mixes features and distributions of random pairs of images.
    The loss is the cross-entropy of the mixtures that are mostly labeled, plus `unlabeled_weight`
    times the mean squared error of the others' probabilities. After each step w_k is brought to
    unit length, so weight decay would change nothing but the size of steps and is left out.

    The authors tune the whole network, with augmented images, and learn the scale too. Mixtures are
    those of unit features here, of pixels there. Without unlabeled images the queries take their
    place. Images are drawn at random, from `seed` and the episode's number.

    Zhongjie Yu, Lin Chen, Zhongwei Cheng, Jiebo Luo: TransMatch: A Transfer-Learning Scheme for
    Semi-Supervised Few-Shot Learning, CVPR 2020, https://arxiv.org/abs/1912.09033.

    Example:
        >>> from epcore.classifiers import FewShotClassifier, TransMatchHead
        >>> support, labels = [[0.1, 0.9], [0.9, 0.2]], ["up", "right"]
        >>> model = FewShotClassifier(TransMatchHead()).fit(support, labels)
        >>> model.predict([[0.9, 0.1], [0.2, 0.8], [0.3, 0.9], [0.8, 0.3]]).tolist()
        ['right', 'up', 'up', 'right']
    """

    needs: ClassVar[Needs] = Needs(
        transductive=True,
        unlabeled=True,
        instead_of_queries=True,
        frozen_features=True,
        equal_shots=True,
    )

    steps: PositiveInt = Field(
        default=1280,
        description="20 epochs of 64 steps, published for 1 shot; for 5 shots there are 25 epochs",
    )
    learning_rate: PositiveFloat = Field(default=0.001, description="authors' code")
    scale: PositiveFloat = Field(
        default=10.0, description="of the cosines; what the authors' code starts from"
    )
    temperature: PositiveFloat = Field(
        default=0.5,
        description="guessed distributions are raised to 1 / temperature; authors' code",
    )
    mixup: PositiveFloat = Field(
        default=0.75, description="shares of mixtures are Beta(mixup, mixup); authors' code"
    )
    unlabeled_weight: NonNegativeFloat = Field(
        default=5.0, description="weight of the squared error; authors' code"
    )
    seed: int = Field(default=0, ge=0, lt=4000, description="of the images that are drawn")

    @torch.no_grad()
    def logits(self, episodes: EpisodeBatch) -> Tensor:
        support, places = support_in_order(episodes)
        points = torch.cat([support, in_order(episodes.unlabeled_or_query)], dim=-2)
        points, query = (
            functional.normalize(features, dim=-1) for features in (points, episodes.query)
        )
        labels = episodes.support_labels
        weights = functional.normalize(labels.mT @ points[..., : episodes.labeled, :], dim=-1)
        velocity = torch.zeros_like(weights)
        for draw in self._draws(episodes, points):
            batch = rows_of(points, draw.rows)
            slope = self._slope(self.scale * weights @ batch.mT, labels, draw)
            velocity = MOMENTUM * velocity + self.scale * slope @ batch
            weights = functional.normalize(weights - self.learning_rate * velocity, dim=-1)
        return torch.take_along_dim(self.scale * query @ weights.mT, places, dim=-1)

    def _slope(self, outputs: Tensor, labels: Tensor, draw: _Draw) -> Tensor:
        """The gradient of the loss in the outputs `(..., way, 48)` of images, before mixtures.

        The output of a mixture is that of its two images mixed, divided by its length.
        """
        targets = (outputs / self.temperature).softmax(dim=-2)
        targets[..., :LABELED] = labels[draw.rows[..., :LABELED]].mT
        probabilities = (draw.mixed(outputs) / draw.lengths).softmax(dim=-2)
        errors = probabilities - draw.mixed(targets)
        labeled, unlabeled = errors[..., :LABELED], errors[..., LABELED:]
        guessed = probabilities[..., LABELED:]
        mean = (guessed * unlabeled).sum(dim=-2, keepdim=True)
        weight = 2 * self.unlabeled_weight / labels.shape[-1]
        unlabeled = weight * guessed * (unlabeled - mean)
        slope = torch.cat([labeled / LABELED, unlabeled / UNLABELED], dim=-1)
        return draw.unmixed(slope / draw.lengths)

    def _draws(self, episodes: EpisodeBatch, points: Tensor) -> Iterator[_Draw]:
        """The draws of all steps, from unit points `(..., n, D)`, the support first."""
        leading, (n, _) = points.shape[:-2], points.shape[-2:]
        cosines = (points @ points.mT).flatten(-2)
        randoms = [
            np.random.default_rng(generator.initial_seed())
            for generator in episodes.generators(self.seed)
        ]
        for first in range(0, self.steps, AT_ONCE):
            count = min(AT_ONCE, self.steps - first)
            numbers = [self._numbers(random, count, episodes.labeled, n) for random in randoms]
            rows, partners, shares = (
                torch.from_numpy(np.stack(part)).reshape(*leading, count, -1).to(points.device)
                for part in zip(*numbers, strict=True)
            )
            shares = shares.to(points.dtype)
            pairs = (rows * n + rows.gather(-1, partners)).flatten(-2)
            products = shares * (1 - shares) * cosines.gather(-1, pairs).view_as(rows)
            squares = shares.square() + (1 - shares).square() + 2 * products
            lengths = squares.clamp_min(1e-6).sqrt()
            for step in range(count):
                partner, share, length = (
                    part[..., step, None, :] for part in (partners, shares, lengths)
                )
                yield _Draw(rows[..., step, :], partner, partner.argsort(dim=-1), share, length)

    def _numbers(
        self, random: np.random.Generator, steps: int, labeled: int, n: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows and partners `(steps, 48)`, shares `(steps, 1)`, of an episode of n images."""
        rows = [
            random.integers(0, labeled, (steps, LABELED)),
            random.integers(labeled, n, (steps, UNLABELED)),
        ]
        partners = random.random((steps, LABELED + UNLABELED)).argsort(axis=1)
        shares = random.beta(self.mixup, self.mixup, (steps, 1))
        return np.hstack(rows), partners, np.maximum(shares, 1 - shares)
