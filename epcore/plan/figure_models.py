"""The file figures.yaml: one section a figure, named after it."""

from typing import Annotated

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from epcore.plan.settings import Probability, Settings

AtLeastTwo = Annotated[int, Field(ge=2)]


class NetworkFigure(Settings):
    """A figure of trained networks: a recipe each, tested on the episodes of one protocol."""

    column: str
    backbone: str
    protocol: str
    recipes: tuple[str, ...]


class AlphaSearch(NetworkFigure):
    """Recipes that differ in the alpha of embedding propagation."""

    label_alphas: Annotated[tuple[Probability, ...], Field(min_length=1)]


class Speed(Settings):
    """A table of classifiers, its block whose rows are drawn, and the data set of the columns."""

    table: str
    block: str
    column: str


class PerEpisode(Settings):
    """A table and two rows of each of its blocks whose single episodes are drawn."""

    table: str
    rows: tuple[str, str]


class TwoMoons(Settings):
    """Embedding propagation of two moons, in random batches and of all points."""

    points: Annotated[int, Field(ge=4)]
    noise: PositiveFloat
    embedding_alpha: Probability
    batch_sizes: Annotated[tuple[AtLeastTwo, ...], Field(min_length=1)]
    batches: AtLeastTwo
    examples: PositiveInt
    draws: AtLeastTwo
    seed: NonNegativeInt

    @model_validator(mode="after")
    def _batches_are_parts(self) -> "TwoMoons":
        if max(self.batch_sizes) > self.points or self.examples > self.points:
            raise ValueError("batch_sizes and examples must not be larger than points")
        return self


class DecisionBoundary(Settings):
    """Decision boundaries of three classes in two dimensions."""

    points: AtLeastTwo
    spread: PositiveFloat
    labeled: PositiveInt
    window: PositiveFloat
    grid: AtLeastTwo
    curvature_step: PositiveFloat
    draws: AtLeastTwo
    embedding_alpha: Probability
    label_alpha: Probability
    seed: NonNegativeInt

    @model_validator(mode="after")
    def _some_points_are_unlabeled(self) -> "DecisionBoundary":
        if self.labeled >= self.points:
            raise ValueError("labeled must be smaller than points")
        return self


class InterpolatedPairs(Settings):
    """Which pairs of embeddings, and in how many steps from one to the other."""

    pairs: AtLeastTwo
    shown: PositiveInt
    steps: AtLeastTwo
    resamples: PositiveInt
    seed: NonNegativeInt


class Interpolation(NetworkFigure, InterpolatedPairs):
    """Class probabilities between pairs of embeddings of two networks, called by `labels`."""

    recipes: tuple[str, str]
    labels: tuple[str, str]

    @model_validator(mode="after")
    def _networks_differ(self) -> "Interpolation":
        for key in ("recipes", "labels"):
            one, other = getattr(self, key)
            if one == other:
                raise ValueError(f"{key} has {one!r} twice; the two networks must differ in both")
        return self


class Gap(Settings):
    """How far apart recipes are while they train: each row of `table` and the row it names.

    A panel is a block of the table; `label` says which rows are compared.
    """

    table: str
    label: str


class FigureSettings(Settings):
    """The sections; names in the file have hyphens, as the figures' files do."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    alpha: AlphaSearch
    two_moons: TwoMoons
    decision_boundary: DecisionBoundary
    interpolation: Interpolation
    gap: Gap
    speed: Speed
    per_episode: PerEpisode
