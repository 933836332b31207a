"""The configs of the figures that show scores and trainings."""

from epcore.evaluation.config import Propagation
from epcore.report.config import Training
from epcore.settings import ComputeConfig, Settings, StageConfig


class AblationConfig(StageConfig):
    """Draw the effects of an ablation's factors; `note` says what the numbers are of.

    `marks` are the factors that are on in each row of the table's block, in one of its columns.
    """

    stage_version: int = 3
    factors: tuple[str, ...]
    block: str
    column: str
    marks: dict[str, tuple[str, ...]]
    note: str


class AlphaCandidate(Settings):
    """A checkpoint that was trained with some alpha: its features, and how it is tested."""

    features: str
    propagation: Propagation


class AlphaConfig(ComputeConfig):
    """Choose alpha on validation classes; `note` says what the numbers are of."""

    stage_version: int = 2
    candidates: tuple[AlphaCandidate, ...]
    label_alphas: tuple[float, ...]
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


class PlotConfig(StageConfig):
    """Draw accuracy over one property of the episodes; `note` says what the numbers are of."""

    stage_version: int = 1
    label: str
    series: tuple[str, ...]
    points: tuple[PlotPoint, ...]
    note: str


class CurvesConfig(StageConfig):
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


class GapConfig(StageConfig):
    """Draw how far apart pretrainings are, epoch by epoch; `note` says what they are of."""

    stage_version: int = 1
    pairs: tuple[GapPair, ...]
    label: str
    note: str


class SpeedConfig(StageConfig):
    """Draw the accuracy of classifiers over the time that they take.

    `labels` has the rows of the table's block that are drawn, and `panels` its columns.
    """

    stage_version: int = 2
    block: str
    labels: dict[str, str]
    panels: dict[str, str]
    note: str


class Panel(Settings):
    """Where the numbers of a table's block and column are drawn."""

    block: str
    column: str
    dataset: str
    backbone: str
    episodes: str


class PerEpisodeConfig(StageConfig):
    """Draw how the accuracies of single episodes of two rows of a table are distributed."""

    stage_version: int = 2
    rows: tuple[str, str]
    panels: tuple[Panel, ...]
    note: str
