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
    unlabeled images are in an order that a classifier may use.

    `queries` counts those of all classes together, `unlabeled` likewise; the latter is given by
    name, and without it there are none.

    Only some classifiers take the others. base_mean: the mean feature of the base images `(D,)`.
    base_weights: `(C, D)`, a row for each base class. numbers: int64 `(...)`, the numbers of the
    episodes, which seed random draws; their places, unless they are given.
    """

    points: Tensor
    way: int
    shot: int
    queries: int
    base_mean: Tensor | None = None
    base_weights: Tensor | None = None
    numbers: Tensor | None = None
    unlabeled: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
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
        return self.way * self.shot

    @property
    def support(self) -> Tensor:
        """`(..., way * shot, D)`."""
        return self.points[..., : self.labeled, :]

    @property
    def support_labels(self) -> Tensor:
        """One-hot classes `(way * shot, way)` of the support, alike in all episodes."""
        classes = torch.arange(self.way, device=self.points.device)
        return functional.one_hot(classes.repeat_interleave(self.shot), self.way).to(
            self.points.dtype
        )

    @property
    def class_means(self) -> Tensor:
        """Mean of each class's support `(..., way, D)`."""
        by_class = (*self.points.shape[:-2], self.way, self.shot, self.points.shape[-1])
        return self.support.reshape(by_class).mean(dim=-2)

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
