"""Episodes as classifiers see them: features, and which of them are the support."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class EpisodeBatch:
    """Episodes of one size, N images each, D features an image.

    points `(..., N, D)`, any number of leading dimensions: first the support, `shot` images of each
    class in turn, then the `queries` of all classes, then the unlabeled images. Neither queries nor
    unlabeled images are in an order that a classifier may use. Where classes have unequal numbers
    of support images, `shot` is a tuple with the number of each class.

    `queries` counts those of all classes together, `unlabeled` likewise; the latter is given by
    name, and without it there are none.

    Only some classifiers take the others. base_mean: the mean feature of the base images `(D,)`.
    base_weights: `(C, D)`, a row for each base class. numbers: int64 `(...)`, the numbers of the
    episodes, which seed random draws; their places, unless they are given.
    """

    points: Tensor
    way: int
    shot: int | tuple[int, ...]
    queries: int
    base_mean: Tensor | None = None
    base_weights: Tensor | None = None
    numbers: Tensor | None = None
    unlabeled: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if len(self.shots) != self.way or min(self.shots) < 1:
            raise ValueError(
                f"shot {self.shot}: give one or more images for each of {self.way} classes"
            )
        images = self.points.shape[-2]
        needed = self.labeled + self.queries + self.unlabeled
        if images != needed:
            unlabeled = images - self.labeled - self.queries
            advice = (
                f"if the others are queries, give queries={self.queries + unlabeled}; if they are "
                f"unlabeled images, unlabeled={unlabeled}"
                if unlabeled > 0
                else "give more points, or lower the numbers"
            )
            raise ValueError(
                f"points has {images} images an episode, but {self.way} x {self.shot} support "
                f"images, {self.queries} queries of all classes together and {self.unlabeled} "
                f"unlabeled images are {needed}; {advice}"
            )

    @property
    def labeled(self) -> int:
        """How many support images there are."""
        return sum(self.shots)

    @property
    def shots(self) -> tuple[int, ...]:
        """How many support images each class has."""
        return self.shot if isinstance(self.shot, tuple) else (self.shot,) * self.way

    @property
    def equal_shots(self) -> int | None:
        """How many support images every class has; None if classes have unequal numbers."""
        return self.shots[0] if len(set(self.shots)) == 1 else None

    @property
    def counts(self) -> Tensor:
        """How many support images each class has `(way,)`, of the features' type."""
        return self.points.new_tensor(self.shots)

    @property
    def support(self) -> Tensor:
        """The labeled images `(..., labeled, D)`."""
        return self.points[..., : self.labeled, :]

    @property
    def support_labels(self) -> Tensor:
        """One-hot classes `(labeled, way)` of the support, alike in all episodes."""
        classes = torch.arange(self.way).repeat_interleave(torch.tensor(self.shots))
        return functional.one_hot(classes.to(self.points.device), self.way).to(self.points.dtype)

    @property
    def node_labels(self) -> Tensor:
        """One-hot classes `(..., N, way)` of the support, and zeros for all other images."""
        labels = self.points.new_zeros(*self.points.shape[:-1], self.way)
        labels[..., : self.labeled, :] = self.support_labels
        return labels

    @property
    def class_means(self) -> Tensor:
        """Mean of each class's support `(..., way, D)`."""
        if (shot := self.equal_shots) is None:
            return self.support_labels.mT @ self.support / self.counts[:, None]
        by_class = (*self.points.shape[:-2], self.way, shot, self.points.shape[-1])
        return self.support.reshape(by_class).mean(dim=-2)

    def by_class(self, values: Tensor) -> Tensor:
        """Values `(..., labeled)` of the support images, as `(..., way, most)`.

        `most` is the largest class's number of images; smaller classes are filled with -inf.
        """
        most = max(self.shots)
        parts = torch.split(values, list(self.shots), dim=-1)
        return torch.stack(
            [functional.pad(part, (0, most - part.shape[-1]), value=-torch.inf) for part in parts],
            dim=-2,
        )

    @property
    def query(self) -> Tensor:
        """`(..., queries, D)`."""
        return self.points[..., self.labeled : self.labeled + self.queries, :]

    @property
    def unlabeled_points(self) -> Tensor:
        """`(..., unlabeled, D)`."""
        return self.points[..., self.labeled + self.queries :, :]

    @property
    def unlabeled_or_query(self) -> Tensor:
        """The unlabeled images `(..., n, D)` or, of episodes without any, the queries."""
        return self.unlabeled_points if self.unlabeled else self.query

    def generators(self, seed: int) -> list[torch.Generator]:
        """A CPU generator for each episode of all leading dimensions.

        It depends on the seed and the episode's number alone: a seed has a million episodes of
        its own, and torch's generator takes 32 bits.
        """
        numbers = self.numbers
        if numbers is None:
            numbers = torch.arange(math.prod(self.points.shape[:-2]))
        first = 1_000_000 * seed
        return [torch.Generator().manual_seed(first + int(number)) for number in numbers.flatten()]
