"""Classifiers of the queries of few-shot episodes, on the features of a network: one file each.

A classifier is a file here with one class that extends `EpisodeClassifier`. Recipes call it by the
file's name: `classifier: my-method` is `my_method.py`, `{name: my-method, steps: 20}` sets its
field `steps`. Python imports the class, `from epcore.classifiers import MyMethod`. Files whose
names begin with an underscore are no classifiers. The tests of tests/classifiers/test_invariants.py
find each file by themselves.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import ClassVar

import torch
from pydantic import Field, field_validator
from torch import Tensor

from epcore.classifiers._episodes import EpisodeBatch
from epcore.classifiers._preprocessing import Step, preprocessed
from epcore.errors import UserError
from epcore.plan.load import validate
from epcore.plan.recipe_models import CLASSIFIERS, Propagation
from epcore.plan.settings import Settings

__all__ = ["EpisodeBatch", "EpisodeClassifier", "Needs", "Step", "load_classifier"]


@dataclass(frozen=True)
class Needs:
    """What a classifier takes of an episode besides the support and the query that it classifies.

    Attributes:
        transductive: the scores of a query depend on the other queries.
        unlabeled: it takes unlabeled images. Episodes that have some are refused for the others.
        instead_of_queries: where there are unlabeled images, queries have no say in each other.
        balanced: it assumes that each class has as many queries as any other, or as many of the
            unlabeled images that take their place.
        base_weights: it takes the weights of the base classes, of the linear layer that the
            network was trained with.
        frozen_features: its scores have no gradient with respect to the features, or a wrong one,
            so that no network can be trained through it.
    """

    transductive: bool = False
    unlabeled: bool = False
    instead_of_queries: bool = False
    balanced: bool = False
    base_weights: bool = False
    frozen_features: bool = False


class EpisodeClassifier(Settings, ABC):
    """A method and its settings, which are its fields."""

    needs: ClassVar[Needs] = Needs()

    preprocessing: tuple[Step, ...] = Field(
        default=(), description="what is done to the features first, in this order"
    )

    @field_validator("preprocessing")
    @classmethod
    def _steps_that_fit(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        if "center-base" in steps[1:]:
            raise ValueError("center-base comes first: the mean is that of the features themselves")
        if "power" in steps and any(
            step.startswith("center") for step in steps[: steps.index("power")]
        ):
            raise ValueError("power comes before centering, which makes features negative")
        return steps

    @property
    def name(self) -> str:
        """As recipes call it."""
        return type(self).__module__.rpartition(".")[-1].replace("_", "-")

    @property
    def transductive(self) -> bool:
        """Whether the scores of a query depend on the other queries, without unlabeled images."""
        return self.needs.transductive or self.shares_preprocessing

    @property
    def shares_preprocessing(self) -> bool:
        """Whether its preprocessing takes a mean over queries."""
        return not {"center-episode", "center-split"}.isdisjoint(self.preprocessing)

    @property
    def balanced(self) -> bool:
        """Whether it assumes that each class has as many queries as any other."""
        return self.needs.balanced or "center-split" in self.preprocessing

    @property
    def centers_on_base(self) -> bool:
        """Whether it takes the mean feature of the base images."""
        return "center-base" in self.preprocessing

    def scores(self, episodes: EpisodeBatch) -> Tensor:
        """Logits `(..., queries, way)`: their softmax is the class distribution of each query.

        Every episode is scored as if it were alone. Features in half precision, as under autocast,
        are scored in float32, of which the logits are then.

        Raises:
            ValueError: for unlabeled images, if it takes none, or without what it needs.
        """
        if episodes.unlabeled and not self.needs.unlabeled:
            raise ValueError(f"the classifier {self.name} takes no unlabeled images")
        exact = episodes.points.to(torch.promote_types(episodes.points.dtype, torch.float32))
        with torch.autocast(exact.device.type, enabled=False):
            points = preprocessed(self.preprocessing, replace(episodes, points=exact))
            return self.logits(replace(episodes, points=points, base_mean=None))

    @abstractmethod
    def logits(self, episodes: EpisodeBatch) -> Tensor:
        """`scores` of features that are preprocessed."""


def kind_of(name: str) -> type[EpisodeClassifier]:
    """The class in the file of that name.

    Raises:
        UserError: if Python cannot import the file, or it has no such class or several.
    """
    try:
        module = import_module(f"{__name__}.{name.replace('-', '_')}")
    except Exception as error:  # anything may be wrong in a file of one's own
        at = [(step.filename, step.lineno) for step in extract_tb(error.__traceback__)]
        problem = str(error)
        if isinstance(error, SyntaxError):
            at, problem = [(str(error.filename), error.lineno)], error.msg
        # The first is of this file.
        own = [place for place in at if str(Path(place[0]).parent) in __path__][1:] or at[-1:]
        file, line = own[-1]
        told = f"{type(error).__name__}: {' '.join(problem.split())}"
        raise UserError(
            f"{file}, line {line}: the classifier {name} cannot be imported ({told}); mend the file"
        ) from None
    kinds = [
        found
        for found in vars(module).values()
        if isinstance(found, type)
        and issubclass(found, EpisodeClassifier)
        and found.__module__ == module.__name__
    ]
    if len(kinds) != 1:
        raise UserError(
            f"{module.__file__} has {len(kinds)} classes that extend EpisodeClassifier; give it one"
        )
    if missing := sorted(kinds[0].__abstractmethods__):
        raise UserError(
            f"{module.__file__}: the class {kinds[0].__name__} has no {missing[0]}(); write it"
        )
    return kinds[0]


def __getattr__(name: str) -> type[EpisodeClassifier]:
    """`from epcore.classifiers import TIM`, without the name of its file."""
    for kind in map(kind_of, CLASSIFIERS):
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    kind = kind_of(name)
    shared = {key: value for key, value in settings if key in kind.model_fields}
    return validate(kind, shared | own, f"{where}, classifier {name}")
