"""The settings of protocols and scales."""

from fractions import Fraction
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from epcore.plan.compared_models import ComparedScale
from epcore.plan.datasets import DataSet
from epcore.plan.recipe_models import Precision
from epcore.plan.settings import Ratio, Settings, Split


class Protocol(Settings):
    """What an episode is: classes, support and query images of each.

    `labeled` of the `shot` support images keep their label, the others become unlabeled;
    `unlabeled` more images of each class are added. Support and queries are those of the protocol
    that differs in these two alone. With `dirichlet` the queries, `way * queries` in all, are not
    spread evenly: see `epcore.data.episodes.sample`. `finetuned_shot` is the shot of the checkpoint
    that is tested, `episodes` an upper bound on their number. `chosen_on` is the protocol on which
    the settings of classifiers are chosen, if it is not `val-` and the name.
    """

    split: Split
    way: Annotated[int, Field(ge=2)]
    shot: PositiveInt
    queries: PositiveInt
    labeled: PositiveInt | None = None
    unlabeled: NonNegativeInt = 0
    dirichlet: PositiveFloat | None = None
    finetuned_shot: PositiveInt | None = None
    episodes: Annotated[int, Field(ge=2)] | None = None
    chosen_on: str | None = None

    @model_validator(mode="after")
    def _some_support_is_unlabeled(self) -> "Protocol":
        if self.labeled is not None and self.labeled >= self.shot:
            raise ValueError("labeled must be smaller than shot; leave it out if all are labeled")
        return self

    @model_validator(mode="after")
    def _unbalanced_queries_alone(self) -> "Protocol":
        if self.dirichlet is not None and self.has_unlabeled:
            raise ValueError("dirichlet goes with no unlabeled images")
        return self

    @property
    def has_unlabeled(self) -> bool:
        """Whether an episode has images without a label that are no queries."""
        return self.unlabeled > 0 or self.labeled is not None

    @property
    def checkpoint_shot(self) -> int:
        """The shot of the fine-tuned checkpoint that is tested."""
        return self.finetuned_shot or self.shot


class ScaledBackbone(Settings):
    """Fractions of the paper's channel counts and numbers of blocks."""

    width: Ratio = Fraction(1)
    depth: Ratio = Fraction(1)

    @property
    def shown(self) -> str:
        """What stands behind a backbone's name, nothing at the paper's size."""
        width = f" ×{self.width}" if self.width != 1 else ""
        return width + (f", depth ×{self.depth}" if self.depth != 1 else "")


class JobResources(Settings):
    """Of one job; `runtime` in minutes."""

    threads: PositiveInt
    mem_mb: PositiveInt
    runtime: PositiveInt


class Resources(JobResources):
    """Of one training job, and of one job of other stages.

    `gpus` cards do one pretraining together; other trainings and embedding use one. Where there
    are no GPUs the same jobs run on the CPU.
    """

    gpus: PositiveInt = 1
    data: JobResources
    embed: JobResources
    evaluate: JobResources

    def values(self) -> tuple[int, int, int]:
        return self.threads, self.mem_mb, self.runtime


class EpisodeCounts(Settings):
    """How many episodes validation and test have; an interval needs two.

    `seed` draws them, and the exemplars of ImageNet-FS. It is not that of trainings, so that
    several trainings are tested on the same episodes.
    """

    val: Annotated[int, Field(ge=2)]
    novel: Annotated[int, Field(ge=2)]
    seed: NonNegativeInt = 0


def _apart(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is there twice")
    return seeds


Seeds = Annotated[tuple[NonNegativeInt, ...], Field(min_length=1), AfterValidator(_apart)]


class TablePart(Settings):
    """The blocks of a table, and the columns by their data sets; all of them if not given."""

    blocks: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    columns: Annotated[tuple[str, ...], Field(min_length=1)] | None = None


class Scale(Settings):
    """What one run of the pipeline covers. `recipe` overrides every recipe.

    `seeds` are of trainings: every network is trained once with each, and tables show the mean.

    `tables` are the only ones that it has, all if there is none. Features are computed once for
    the episodes of every table, so that data with few classes or images must do without some.
    Of the tables in `parts` it shows these alone.
    `classifiers` are the only entries of classifiers.yaml that tables show, all if there is none.
    `imagenet_fs` is an `ImageNetFsScale`, without which the scale has none of its tables.
    """

    note: str
    comparable: bool
    columns: dict[str, str]
    tables: tuple[str, ...] | None = None
    parts: dict[str, TablePart] = Field(default_factory=dict)
    classifiers: tuple[str, ...] | None = None
    datasets: dict[str, DataSet] = Field(default_factory=dict)
    backbones: dict[str, ScaledBackbone]
    episodes: EpisodeCounts
    seeds: Seeds
    precision: Precision
    requires_gpu: bool
    resources: Resources
    recipe: dict[str, Any] = Field(default_factory=dict)
    imagenet_fs: dict[str, Any] | None = None
    compared: ComparedScale = Field(default_factory=ComparedScale)
