"""The settings that config files may hold, with their types; an unknown key is an error."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainSerializer,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from epcore.markup import check
from epcore.plan.compared_models import ComparedScale
from epcore.plan.datasets import DataSet
from epcore.plan.load import suggest
from epcore.plan.settings import Settings, Split


def _fraction(value: Any) -> Any:
    """`1/4`, `0.25` or `1` as an exact fraction; not `1e999999999`, which has as many digits."""
    if isinstance(value, Fraction):
        return value
    try:
        if re.fullmatch(r"\d{1,20}([/.]\d{1,20})?", str(value), re.ASCII):
            return Fraction(str(value))
    except ZeroDivisionError:
        pass
    raise ValueError("expected a ratio such as 1/4 or 0.25")


# Text in the markup of epcore.markup.
Markup = Annotated[str, AfterValidator(check)]
Ratio = Annotated[
    Fraction,
    BeforeValidator(_fraction),
    Field(gt=0),
    PlainSerializer(str, return_type=str),
]
Architecture = Literal["conv4", "resnet12", "wide-resnet", "resnet10", "resnet18"]
Probability = Annotated[float, Field(ge=0, lt=1)]


# -- networks and recipes -------------------------------------------------------------------------


class BackboneInfo(Settings):
    """A backbone of the registry; `label` is how tables call it."""

    architecture: Architecture
    label: str


class Backbone(Settings):
    """A backbone as a stage builds it; see `epcore.backbones`."""

    architecture: Architecture
    width: Ratio = Fraction(1)
    depth: Ratio = Fraction(1)

    def __str__(self) -> str:
        return f"{self.architecture} of width {self.width} and depth {self.depth}"


# A file each; importing them would load torch.
CLASSIFIERS = sorted(
    path.stem.replace("_", "-")
    for path in (Path(__file__).parents[1] / "classifiers").glob("[!_]*.py")
)


def _classifier(value: Any) -> Any:
    """The name of a classifier, or a mapping of `name` and settings; without any, the name."""
    name = value.get("name") if isinstance(value, dict) else value
    if name not in CLASSIFIERS:
        near = suggest(str(name), CLASSIFIERS).removeprefix("; ")
        raise ValueError(f"there is no such classifier ({near})")
    return name if value == {"name": name} else value


class Propagation(Settings):
    """Embedding propagation and the classifier behind it; `epcore.propagation` has their meaning.

    `classifier` is the name of a file of `epcore.classifiers`, or a mapping of `name` and the
    method's own settings. It also takes those of the settings here that it has fields for: label
    propagation all but `embedding`, `part` and `embedding_alpha`.
    """

    embedding: bool
    classifier: Annotated[str | dict[str, Any], BeforeValidator(_classifier)]
    part: Literal["full", "off-diagonal", "diagonal"]
    embedding_alpha: Probability
    label_alpha: Probability
    bandwidth: Literal["std", "var"]
    normalize_labels: bool
    query_logits: Literal["log-scores", "scores"]


class Plateau(Settings):
    """Multiply the learning rate by `factor` after more than `patience` epochs without a gain."""

    metric: Literal["accuracy", "loss"]
    patience: NonNegativeInt
    factor: Annotated[float, Field(gt=0, lt=1)]


class SgdSettings(Settings):
    """SGD with Nesterov momentum and weight decay on all parameters."""

    epochs: PositiveInt
    learning_rate: PositiveFloat
    momentum: Probability
    weight_decay: NonNegativeFloat


class Optimization(SgdSettings):
    """The learning rate falls by one of two schedules.

    plateau: where `plateau` says so; training ends once the rate fell by `stop_ratio`.
    cosine: from the first epoch to the last along half a wave, `(1 + cos(pi epoch / epochs)) / 2`;
    `plateau` and `stop_ratio` then say nothing.
    """

    schedule: Literal["plateau", "cosine"]
    plateau: Plateau
    stop_ratio: Probability


class SteppedDescent(SgdSettings):
    """The learning rate falls to a tenth after each of the epochs `drops`.

    `keep` says which epoch's weights count: the best on validation, or the last.
    """

    drops: tuple[PositiveInt, ...]
    keep: Literal["best", "last"]

    @model_validator(mode="after")
    def _drops_in_time(self) -> "SteppedDescent":
        if list(self.drops) != sorted(set(self.drops)) or (self.drops or (0,))[-1] >= self.epochs:
            raise ValueError("drops must rise and be smaller than epochs")
        return self

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, which counts from 0."""
        return self.learning_rate * 0.1 ** sum(drop <= epoch for drop in self.drops)


class Pretraining(Optimization):
    """Phase one; `batch_size` counts images before they are rotated.

    With `rotated_copies` a batch holds each image in four rotations.
    """

    batch_size: Annotated[int, Field(ge=2)]
    rotated_copies: bool
    rotation_weight: NonNegativeFloat
    rotation_input: Literal["features", "embeddings"]
    heads: Literal["linear", "cosine"] = Field(
        default="linear",
        exclude_if=lambda value: value == "linear",
        description="layers over classes and rotations; cosine ones have a learned scale",
    )

    @model_validator(mode="after")
    def _rotations_to_tell(self) -> "Pretraining":
        if self.rotation_weight > 0 and not self.rotated_copies:
            raise ValueError("rotation_weight must be 0 without rotated_copies")
        return self

    @property
    def copies(self) -> int:
        """How many images a network sees of each image of a batch."""
        return 4 if self.rotated_copies else 1


class Finetuning(Optimization):
    """Phase two: one episode of `way` classes a step; the shot is the checkpoint's."""

    episodes_per_epoch: PositiveInt
    way: Annotated[int, Field(ge=2)]
    queries: PositiveInt
    class_weight: NonNegativeFloat
    class_input: Literal["features", "embeddings"]


class View(Settings):
    """What a network sees of a stored image: resized by one ratio, then the center cropped.

    Both are fractions of the stored size, so 92/84 and 80/84 are the authors' Resize(92) and
    CenterCrop(80) for images of 84 pixels, and the same picture at any other size.
    """

    resize: Ratio
    crop: Ratio

    @model_validator(mode="after")
    def _crop_fits(self) -> "View":
        if self.crop > self.resize:
            raise ValueError("crop must not be larger than resize")
        return self


AugmentationName = Literal["flip", "crop", "jitter", "ordered-jitter"]
Precision = Literal["fp32", "tf32", "bf16"]


class Augmentation(Settings):
    """What each phase does to its images; see `epcore.data.augment`."""

    pretraining: tuple[AugmentationName, ...]
    finetuning: tuple[Literal["flip"], ...]


Phase = Literal["pretraining", "finetuning", "testing"]
TrainingPhase = Literal["pretraining", "finetuning"]


class RecipeSettings(Settings):
    """How a network is trained and tested.

    `phases` lays other settings over `propagation` in one phase. `tested` says which checkpoint
    the test sees: without episodic fine-tuning it is the pretrained one.
    """

    propagation: Propagation
    phases: dict[Phase, dict[str, Any]] = Field(default_factory=dict)
    tested: Literal["finetuned", "pretrained"] = "finetuned"
    pretraining: Pretraining
    finetuning: Finetuning
    augmentation: Augmentation
    view: View


class Recipe(RecipeSettings):
    """A recipe resolved for one backbone and one scale; `protocol` is the reading it follows."""

    description: str
    protocol: str
    grid: dict[str, tuple[Any, ...]] = Field(
        default_factory=dict, description="see `ClassifierChoice`"
    )

    def propagation_in(self, phase: Phase) -> Propagation:
        """The settings of propagation in one phase."""
        settings = self.propagation.model_dump() | self.phases.get(phase, {})
        return Propagation.model_validate(settings)


class ClassifierChoice(Settings):
    """A classifier that any recipe's network may be tested with, an entry of classifiers.yaml.

    `classifier` is as in `Propagation`. `grid` has, for some of its settings, the values of which
    the best is taken on validation episodes. `label` is how tables call it.
    """

    label: Markup
    classifier: Annotated[str | dict[str, Any], BeforeValidator(_classifier)]
    grid: dict[str, Annotated[tuple[Any, ...], Field(min_length=2)]] = Field(default_factory=dict)


class RecipeSources(Settings):
    """The file recipes.yaml; its entries are partial recipes."""

    protocols: dict[str, dict[str, Any]]
    recipes: dict[str, dict[str, Any]]


# -- episodes, scales, tables ---------------------------------------------------------------------


class Protocol(Settings):
    """What an episode is: classes, support and query images of each.

    `labeled` of the `shot` support images keep their label, the others become unlabeled;
    `unlabeled` more images of each class are added. Support and queries are those of the protocol
    that differs in these two alone. With `dirichlet` the queries, `way * queries` in all, are not
    spread evenly: see `epcore.data.episodes.sample`. `finetuned_shot` is the shot of the checkpoint
    that is tested, `episodes` an upper bound on their number.
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


class Scale(Settings):
    """What one run of the pipeline covers. `recipe` overrides every recipe.

    `seeds` are of trainings: every network is trained once with each, and tables show the mean.

    `tables` are the only ones that it has, all if there is none. Features are computed once for
    the episodes of every table, so that data with few classes or images must do without some.
    `classifiers` are the only entries of classifiers.yaml that tables show, all if there is none.
    `imagenet_fs` is an `ImageNetFsScale`, without which the scale has none of its tables.
    """

    note: str
    comparable: bool
    columns: dict[str, str]
    tables: tuple[str, ...] | None = None
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


class Column(Settings):
    """One column: the paper's data set and the protocol of its episodes."""

    name: str
    dataset: str
    protocol: str
    heading: Markup


class Row(Settings):
    """A row of ours names a `recipe`; a row of the literature names its `source`.

    `unlabeled` takes, for the column's protocol p, the protocol p-u<unlabeled>. `paper` is the
    row's name in the paper's numbers, if it has another. `method`, of a row of the literature, is
    the recipe that this run has of it, in the tables that the scale names. `baseline` is the row of
    the block that its paired difference is to, `baseline_recipe` one that the block need not show.
    `marks` are those of the table's marks that are ticked.
    """

    name: str
    label: Markup = ""
    parameters: str = ""
    recipe: str | None = None
    source: str = ""
    method: str | None = None
    unlabeled: PositiveInt | None = None
    paper: str = ""
    baseline: str | None = None
    baseline_recipe: str | None = None
    marks: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_baseline(self) -> "Row":
        if self.baseline is not None and self.baseline_recipe is not None:
            raise ValueError("give baseline or baseline_recipe, not both")
        return self

    @model_validator(mode="after")
    def _ours_or_theirs(self) -> "Row":
        if (self.recipe is None) == (self.source == ""):
            raise ValueError("give either recipe (ours) or source (the literature)")
        return self


class ClassifierRows(Settings):
    """A row for each classifier of classifiers.yaml, or of those in `names`, on one network.

    The network is that of `recipe`. Differences are to the row `baseline`, or to the same
    classifier on the network of `baseline_recipe`.
    """

    recipe: str
    names: tuple[str, ...] | None = None
    baseline: str | None = None
    baseline_recipe: str | None = None


class Block(Settings):
    """The rows of one backbone; without `backbone` all of them are of the literature.

    `label` stands behind the backbone's name, rows of `classifiers` below the others.
    """

    name: str
    label: Markup = ""
    backbone: str | None = None
    rows: tuple[Row, ...] = ()
    classifiers: ClassifierRows | None = None

    @model_validator(mode="after")
    def _ours_have_a_backbone(self) -> "Block":
        if self.backbone is None and any(row.recipe for row in self.rows):
            raise ValueError("a block with a row of ours needs a backbone")
        return self


class Rerun(Settings):
    """What the paper's authors printed of a later run: a file of config/paper, and where."""

    paper: str
    source: str


class Table(Settings):
    """A table of the paper. `title` and `notes` go into the caption. `label` is that of LaTeX.

    `groups` names the paper's data sets above the columns, or is empty for one's own, whose title
    then stands there; `paper` is a file of config/paper, or
    none for a table that the paper does not have; `rerun` is shown below the paper's own. `first`
    heads the first column, `marks` the columns of ticks. `training` adds columns that say when each
    row's learning rate first fell, `costs` two with the time and energy of its training,
    `assumptions` one with what each row's classifier assumes.
    """

    label: str
    paper: str | None = None
    rerun: Rerun | None = None
    first: Markup = ""
    marks: tuple[Markup, ...] = ()
    training: bool = False
    costs: bool = False
    assumptions: bool = False
    title: Markup
    notes: Markup = ""
    groups: dict[str, Markup]
    columns: tuple[Column, ...]
    blocks: tuple[Block, ...]

    @model_validator(mode="after")
    def _rerun_of_the_paper(self) -> "Table":
        if self.rerun is not None and self.paper is None:
            raise ValueError("rerun stands below the paper's numbers; give paper as well")
        return self

    @property
    def printed(self) -> tuple[str, ...]:
        """The files of config/paper that it shows: the paper's, then the re-run's."""
        if self.paper is None:
            return ()
        return (self.paper,) if self.rerun is None else (self.paper, self.rerun.paper)
