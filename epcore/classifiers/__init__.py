"""Classifiers of the queries of few-shot episodes, on the features of a network: one file each.

A classifier is a file here with one class that extends `EpisodeClassifier`. Recipes call it by the
file's name: `classifier: my-method` is `my_method.py`, `{name: my-method, steps: 20}` sets its
field `steps`. Files whose names begin with an underscore are no classifiers. The tests of
tests/classifiers/test_invariants.py find each file by themselves.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from epcore.plan.load import validate
from epcore.plan.models import Propagation
from epcore.plan.settings import Settings


@dataclass(frozen=True)
class Needs:
    """What a classifier takes of an episode besides the support and the query that it classifies.

    Attributes:
        transductive: the scores of a query depend on the other queries.
        unlabeled: it takes unlabeled images. Episodes that have some are refused for the others.
    """

    transductive: bool = False
    unlabeled: bool = False


@dataclass(frozen=True)
class EpisodeBatch:
    """Episodes of one size, N images each, D features an image.

    points `(..., N, D)`, any number of leading dimensions: first the support, `shot` images of each
    class in turn, then the `queries` of all classes, then the unlabeled images. Neither queries nor
    unlabeled images are in an order that a classifier may use.
    """

    points: Tensor
    way: int
    shot: int
    queries: int

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
        return functional.one_hot(classes.repeat_interleave(self.shot)).to(self.points.dtype)

    @property
    def query(self) -> Tensor:
        """`(..., queries, D)`."""
        return self.points[..., self.labeled : self.labeled + self.queries, :]

    @property
    def unlabeled(self) -> Tensor:
        """`(..., U, D)`; U may be 0."""
        return self.points[..., self.labeled + self.queries :, :]


class EpisodeClassifier(Settings, ABC):
    """A method and its settings, which are its fields."""

    needs: ClassVar[Needs] = Needs()

    @property
    def name(self) -> str:
        """As recipes call it."""
        return type(self).__module__.rpartition(".")[-1].replace("_", "-")

    @abstractmethod
    def scores(self, episodes: EpisodeBatch) -> Tensor:
        """Logits `(..., queries, way)`: their softmax is the class distribution of each query.

        Every episode is scored as if it were alone.
        """


def load_classifier(settings: Propagation, where: str) -> EpisodeClassifier:
    """The classifier of a recipe.

    A field that `Propagation` has too, such as `bandwidth`, is taken from there, unless the
    classifier's own settings have it.

    Raises:
        UserError: for settings that it does not have; it begins with `where`.
    """
    named = settings.classifier
    own = {"name": named} if isinstance(named, str) else dict(named)
    name = own.pop("name")
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    (kind,) = (
        found
        for found in vars(module).values()
        if isinstance(found, type)
        and issubclass(found, EpisodeClassifier)
        and found.__module__ == module.__name__
    )
    shared = {key: value for key, value in settings if key in kind.model_fields}
    return validate(kind, shared | own, f"{where}, classifier {name}")
