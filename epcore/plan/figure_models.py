"""The file figures.yaml: one section a figure, named after it."""

from typing import Annotated

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from epcore.plan.settings import Probability, Settings

AtLeastTwo = Annotated[int, Field(ge=2)]


class NetworkFigure(Settings):
    """A figure of trained networks: a recipe each, tested on the episodes of one protocol."""

    column: str = Field(description="the scale's column that names the data set")
    backbone: str = Field(description="an entry of backbones.yaml")
    protocol: str = Field(description="its episodes, an entry of protocols.yaml")
    recipes: tuple[str, ...] = Field(description="the recipes of the networks")


class AlphaSearch(NetworkFigure):
    """Recipes that differ in the alpha of embedding propagation."""

    label_alphas: Annotated[tuple[Probability, ...], Field(min_length=1)] = Field(
        description="the alphas of label propagation that are tried"
    )


class Speed(Settings):
    """Classifiers of a table, drawn over the time that they take."""

    table: str = Field(description="a table of classifiers")
    block: str = Field(description="its block whose rows are drawn")
    column: str = Field(description="the data set of its columns")


class PerEpisode(Settings):
    """A table and two rows of each of its blocks whose single episodes are drawn."""

    table: str = Field(description="a table")
    rows: tuple[str, str] = Field(
        description="the two rows of its blocks that are drawn, the first on the left"
    )


class TwoMoons(Settings):
    """Embedding propagation of two moons, in random batches and of all points."""

    points: Annotated[int, Field(ge=4)] = Field(description="of both moons together")
    noise: PositiveFloat = Field(description="standard deviation of the points")
    embedding_alpha: Probability = Field(description="alpha of embedding propagation")
    batch_sizes: Annotated[tuple[AtLeastTwo, ...], Field(min_length=1)] = Field(
        description="points that are propagated together"
    )
    batches: AtLeastTwo = Field(description="random batches of each size that a point is in")
    examples: PositiveInt = Field(description="points whose projections stand out")
    draws: AtLeastTwo = Field(
        description="sets of points that the numbers are means over; the first is drawn"
    )
    seed: NonNegativeInt = Field(description="draws the points")

    @model_validator(mode="after")
    def _batches_are_parts(self) -> "TwoMoons":
        if max(self.batch_sizes) > self.points or self.examples > self.points:
            raise ValueError("batch_sizes and examples must not be larger than points")
        return self


class DecisionBoundary(Settings):
    """Decision boundaries of three classes in two dimensions."""

    points: AtLeastTwo = Field(description="of each class")
    spread: PositiveFloat = Field(
        description="standard deviation around centers on the unit circle"
    )
    labeled: PositiveInt = Field(
        description="points of each class that keep their label in panel c"
    )
    window: PositiveFloat = Field(description="half the width of what is drawn")
    grid: AtLeastTwo = Field(description="locations along each side")
    curvature_step: PositiveFloat = Field(
        description="length of boundary over which its turning is measured"
    )
    draws: AtLeastTwo = Field(
        description="sets of points that the numbers are means over; the first is drawn"
    )
    embedding_alpha: Probability = Field(description="alpha of embedding propagation")
    label_alpha: Probability = Field(description="alpha of label propagation")
    seed: NonNegativeInt = Field(description="draws the points")

    @model_validator(mode="after")
    def _some_points_are_unlabeled(self) -> "DecisionBoundary":
        if self.labeled >= self.points:
            raise ValueError("labeled must be smaller than points")
        return self


class InterpolatedPairs(Settings):
    """Which pairs of embeddings, and in how many steps from one to the other."""

    pairs: AtLeastTwo = Field(description="pairs of images, one of each of so many episodes")
    shown: PositiveInt = Field(description="curves that are drawn one by one")
    steps: AtLeastTwo = Field(description="steps from one image to the other")
    resamples: PositiveInt = Field(description="of the bootstrap")
    seed: NonNegativeInt = Field(description="draws the pairs")


class Interpolation(NetworkFigure, InterpolatedPairs):
    """Class probabilities between pairs of embeddings of two networks."""

    recipes: tuple[str, str] = Field(
        description="the two networks; the first is on top and what the second is taken from"
    )
    labels: tuple[str, str] = Field(description="how the figure calls them")

    @model_validator(mode="after")
    def _networks_differ(self) -> "Interpolation":
        for key in ("recipes", "labels"):
            one, other = getattr(self, key)
            if one == other:
                raise ValueError(f"{key} has {one!r} twice; the two networks must differ in both")
        return self


class Gap(Settings):
    """How far apart recipes are while they train: each row of a table and the row it names."""

    table: str = Field(description="a table; a panel is a block of it")
    label: str = Field(description="which rows are compared, as the axis says")


class FigureSettings(Settings):
    """The sections; names in the file have hyphens, as the figures' files do."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    alpha: AlphaSearch = Field(description="validation accuracy over both alphas")
    two_moons: TwoMoons = Field(description="embedding propagation of two moons")
    decision_boundary: DecisionBoundary = Field(
        description="boundaries of three classes in the plane"
    )
    interpolation: Interpolation = Field(description="class probability between two images")
    gap: Gap = Field(description="how far apart rows are while they train")
    speed: Speed = Field(description="accuracy of classifiers over their time")
    per_episode: PerEpisode = Field(
        description="how the accuracies of single episodes are distributed"
    )
