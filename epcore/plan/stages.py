"""The config of each stage: the slice of all config that it reads, and nothing else.

The workflow passes a stage its slice as one canonical JSON text, so a change of config re-runs
just the stages that read it. White space and comments in the code re-run nothing.
"""

from typing import Any, Literal, cast

from pydantic import Field

from epcore.files import canonical_json
from epcore.plan import paths
from epcore.plan.claim_models import Claimed, Product, SignedNumber
from epcore.plan.compared_models import EpisodicTraining
from epcore.plan.datasets import DataSet, SourceFile
from epcore.plan.figure_models import DecisionBoundary, InterpolatedPairs, TwoMoons
from epcore.plan.imagenet_fs_models import (
    ClassifierTraining,
    Generator,
    GeneratorTraining,
    WeightPropagation,
)
from epcore.plan.recipe_models import (
    AugmentationName,
    Backbone,
    Finetuning,
    Precision,
    Pretraining,
    Propagation,
    View,
)
from epcore.plan.scale_models import EpisodeSettings
from epcore.plan.settings import Settings
from epcore.plan.table_models import Table


def config_text(settings: Settings) -> str:
    """A stage's config as the canonical JSON text that its command line takes."""
    return canonical_json(settings.model_dump(mode="json"))


class Stage(Settings):
    """What every stage's config has.

    stage_version: raised by hand whenever a stage's code changes its results, which re-runs it.
    """

    stage_version: int


class FetchStage(Stage):
    """Find or download a source's files, and verify them."""

    stage_version: int = 1
    files: dict[str, SourceFile]


class DataStage(Stage):
    """Build a store."""

    stage_version: int = 4
    dataset: DataSet


class EpisodesStage(Stage, EpisodeSettings):
    """Sample episodes."""

    stage_version: int = 2
    episodes: int
    seed: int


class NetworkStage(Stage):
    """Run a network over images."""

    backbone: Backbone
    view: View
    precision: Precision


class TrainingStage(NetworkStage):
    """Train a network."""

    seed: int
    propagation: Propagation
    augmentation: tuple[AugmentationName, ...]


class PretrainStage(TrainingStage):
    """Phase one."""

    stage_version: int = 2
    pretraining: Pretraining


class FinetuneStage(TrainingStage):
    """Phase two."""

    stage_version: int = 1
    shot: int
    finetuning: Finetuning


class SelectStage(Stage):
    """Take the checkpoint of the best candidate on validation; the candidates are recipes."""

    stage_version: int = 1
    candidates: tuple[str, ...]


class EmbedStage(NetworkStage):
    """Compute features."""

    stage_version: int = 2


class BaseClassesStage(NetworkStage):
    """Find the mean feature of the base images and the weights of the base classes."""

    stage_version: int = 1


class EvaluateStage(Stage):
    """Classify the queries of episodes; `grid` is that of `ClassifierChoice`."""

    stage_version: int = 3
    propagation: Propagation
    grid: dict[str, tuple[Any, ...]] = Field(default={}, exclude_if=lambda value: not value)


class MetaTrainStage(NetworkStage):
    """Train a compared method on episodes, for tests with `shot` support images of each class.

    What is one number for each shot in `training` is that of `shot`.
    """

    stage_version: int = 2
    method: dict[str, Any]
    training: EpisodicTraining
    shot: int
    seed: int

    @property
    def episode(self) -> tuple[int, int, int]:
        """Classes of a training episode, and support and query images of each."""
        training = self.training
        shot = training.shot or self.shot
        return cast("tuple[int, int, int]", (training.way, shot, training.queries))

    @property
    def steps(self) -> int:
        """Of an epoch."""
        return cast("int", self.training.steps)

    @property
    def tasks(self) -> int:
        """Episodes of a step."""
        return cast("int", self.training.tasks)


class MetaTestStage(NetworkStage):
    """Test a compared method on frozen episodes."""

    stage_version: int = 2
    method: dict[str, Any]
    way: int
    batch_statistics: bool


class Training(Settings):
    """One training of a recipe, which another one may have named (`trained_as`).

    model: of a checkpoint that holds several, the one that it trained.
    """

    seed: int
    recipe: str
    phase: str
    trained_as: str
    checkpoint: str
    model: str = ""

    @property
    def files(self) -> tuple[str, str]:
        """Its curve, and the meta that says which epoch was kept."""
        return paths.curve(self.checkpoint, self.model), paths.meta(self.checkpoint)

    @property
    def ledger(self) -> str:
        """That of its scale, which tells of every attempt at it."""
        return paths.LEDGER.format(scale="".join(self.checkpoint.split("/")[1:2]))


class MeasuredCell(Settings):
    """One cell of ours and one seed: the files of its per-episode scores and its checkpoint's meta.

    `baseline` are the scores of the same seed that its paired difference is to, unless they are its
    own; `trainings` made the checkpoint, if the table tells of them; `method_meta` is the meta of
    the scores, if the table tells of their classifier.
    """

    block: str
    row: str
    column: str
    seed: int
    scores: str
    checkpoint_meta: str
    baseline: str | None
    trainings: tuple[Training, ...] = ()
    method_meta: str = ""

    @property
    def files(self) -> list[str]:
        """All that it is measured from."""
        curves = [file for training in self.trainings for file in training.files]
        named = (self.scores, self.checkpoint_meta, self.baseline, self.method_meta, *curves)
        return [file for file in named if file]


class TableStage(Stage):
    """Collect a table's numbers and typeset them; see `epcore.report.statistics` for the intervals.

    `table` is that of the config with all rows and blocks that the scale has. `groups` stand above
    each column, `headings` above each block; without one it is in the CSV alone. They and the
    caption are in epcore.markup.
    """

    stage_version: int = 6
    name: str
    table: Table
    caption: str
    groups: tuple[str, ...]
    headings: tuple[str | None, ...]
    cells: tuple[MeasuredCell, ...]

    @property
    def files(self) -> list[str]:
        """What its cells are measured from, each once."""
        return list(dict.fromkeys(file for cell in self.cells for file in cell.files))


class AblationCell(Settings):
    """One cell of the ablation and one seed: the factors that are on, its scores, its place in the
    paper.
    """

    seed: int
    block: str
    paper: str
    marks: tuple[str, ...]
    scores: str


class AblationStage(Stage):
    """Draw the effects of an ablation's factors; `note` says what the numbers are of."""

    stage_version: int = 2
    factors: tuple[str, ...]
    cells: tuple[AblationCell, ...]
    note: str


class AlphaCandidate(Settings):
    """A checkpoint that was trained with some alpha: its features, and how it is tested."""

    features: str
    propagation: Propagation


class AlphaStage(Stage):
    """Choose alpha on validation classes; `note` says what the numbers are of."""

    stage_version: int = 2
    candidates: tuple[AlphaCandidate, ...]
    label_alphas: tuple[float, ...]
    note: str


class TwoMoonsStage(Stage):
    """Propagate two moons."""

    stage_version: int = 2
    settings: TwoMoons


class DecisionBoundaryStage(Stage):
    """Draw and measure decision boundaries."""

    stage_version: int = 2
    settings: DecisionBoundary


class InterpolationNetwork(Settings):
    """A recipe's network: what the figure calls it, its features, how it is tested."""

    name: str
    label: str
    features: str
    propagation: Propagation


class InterpolationStage(Stage):
    """Class probabilities between pairs of embeddings; `note` says what they are of."""

    stage_version: int = 3
    networks: tuple[InterpolationNetwork, InterpolationNetwork]
    settings: InterpolatedPairs
    note: str


class PlotPoint(Settings):
    """A number of a table and where it is drawn: its panel, its line and its position there.

    `baseline` is the line that the number's paired difference is to.
    """

    backbone: str
    dataset: str
    episodes: str
    series: str
    x: int
    table: str
    block: str
    row: str
    column: str
    baseline: str | None

    @property
    def panel(self) -> tuple[str, str, str]:
        return self.backbone, self.dataset, self.episodes


class PlotStage(Stage):
    """Draw accuracy over one property of the episodes; `note` says what the numbers are of."""

    stage_version: int = 1
    label: str
    series: tuple[str, ...]
    points: tuple[PlotPoint, ...]
    note: str


class CurvesStage(Stage):
    """Draw the curves of trainings; `note` says what they are of."""

    stage_version: int = 3
    trainings: tuple[Training, ...]
    note: str


class GapPair(Settings):
    """Two pretrainings of one seed: checkpoints whose validation accuracies are compared."""

    panel: str
    line: str
    seed: int
    checkpoint: str
    baseline: str


class GapStage(Stage):
    """Draw how far apart pretrainings are, epoch by epoch; `note` says what they are of."""

    stage_version: int = 1
    pairs: tuple[GapPair, ...]
    label: str
    note: str


class SpeedPoint(Settings):
    """A classifier's scores, which stand beside their meta, and the panel that shows them."""

    label: str
    panel: str
    scores: str


class SpeedStage(Stage):
    """Draw the accuracy of classifiers over the time that they take."""

    stage_version: int = 1
    points: tuple[SpeedPoint, ...]
    note: str


class PerEpisodeCell(Settings):
    """The scores of a row and a seed, and the panel and the place in it that shows them."""

    dataset: str
    backbone: str
    episodes: str
    row: str
    seed: int
    scores: str


class PerEpisodeStage(Stage):
    """Draw how the accuracies of single episodes of two rows of a table are distributed."""

    stage_version: int = 1
    rows: tuple[str, str]
    cells: tuple[PerEpisodeCell, ...]
    note: str


class ClaimCell(Settings):
    """A cell of a table, as printed, and the scores of every seed of this run; either may lack.

    Cells of the same `draw` have the same support and query images, episode by episode.
    """

    printed: str = ""
    printed_interval: str = ""
    scores: tuple[str, ...] = ()
    draw: str = ""


class ClaimCase(Settings):
    """The sum of the cells `plus`, less those of `minus`, less the largest of `rivals`, if any."""

    name: str
    plus: tuple[str, ...]
    minus: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        return (*self.plus, *self.minus, *self.rivals)


class ClaimCondition(Settings):
    """Every case, some case or the mean of all cases lies between `low` and `high`.

    above: `low` itself is too low. absolute: it is asked only of data that the paper has.
    """

    cases: tuple[ClaimCase, ...]
    how: Literal["every", "some", "mean"] = "every"
    low: float | None = None
    high: float | None = None
    above: bool = False
    absolute: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(cell for case in self.cases for cell in case.cells)


class ClaimNumber(SignedNumber):
    """A number in a figure's file, which is empty if the scale lacks the figure, and its sign."""

    file: str


class JudgedClaim(Claimed):
    """A claim, and all that must be so if it holds.

    unasked: what a run says of it that has none of its cells.
    """

    ours: bool
    tables: tuple[str, ...]
    conditions: tuple[ClaimCondition, ...]
    products: tuple[Product, ...]
    numbers: tuple[ClaimNumber, ...]
    unasked: str


class ClaimsStage(Stage):
    """Judge claims by printed cells and by this run's; see `epcore.report.verdicts`.

    papers: table -> the file of config/paper that prints it.
    """

    stage_version: int = 2
    title: str
    notes: str
    seeds: tuple[int, ...]
    comparable: bool
    claims: tuple[JudgedClaim, ...]
    cells: dict[str, ClaimCell]
    papers: dict[str, str]


class ReproductionStage(Stage):
    """Typeset the reproduction: what a scale says of itself, by name, and what it makes."""

    stage_version: int = 2
    scale: str
    seeds: tuple[int, ...]
    facts: dict[str, str]
    tables: tuple[str, ...]
    figures: tuple[str, ...]


class EnvironmentStage(Stage):
    """Sum up where jobs ran, from the metas that they wrote."""

    stage_version: int = 1
    title: str
    metas: tuple[str, ...]


class ExemplarsStage(Stage):
    """Draw the exemplars of novel classes, for every K, split and trial."""

    stage_version: int = 1
    shots: tuple[int, ...]
    trials: dict[Literal["val", "novel"], int]
    seed: int


class ClassifierStage(NetworkStage):
    """Train the cosine classifier."""

    stage_version: int = 2
    training: ClassifierTraining
    seed: int


class ImageFeaturesStage(NetworkStage):
    """Compute the features of every image of a data set."""

    stage_version: int = 1


class GeneratorStage(Stage):
    """Train generators of class weights, one for each of the `shots`.

    `propagation` is that of training; its `step` matters at test only and is not part of it.
    """

    stage_version: int = 1
    generator: Generator
    training: GeneratorTraining
    propagation: WeightPropagation | None
    shots: tuple[int, ...]
    seed: int


class TrialsStage(Stage):
    """Test generators of class weights on frozen exemplars; `step_sizes` has one for each K."""

    stage_version: int = 1
    generator: Generator
    propagation: WeightPropagation | None
    shots: tuple[int, ...]
    step_sizes: tuple[float, ...]
    prior: float
