"""The configs of the figures that show scores and trainings."""

from epcore.evaluation.config import Propagation
from epcore.report.config import ScoreColumn, Training
from epcore.settings import ComputeConfig, Settings, StageConfig


class AblationCell(Settings):
    """One cell of the ablation and one seed: the factors that are on, its scores, its place in the
    paper.
    """

    seed: int
    block: str
    paper: str
    marks: tuple[str, ...]
    scores: ScoreColumn


class AblationConfig(StageConfig):
    """Draw the effects of an ablation's factors; `note` says what the numbers are of."""

    stage_version: int = 2
    factors: tuple[str, ...]
    cells: tuple[AblationCell, ...]
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


class SpeedPoint(Settings):
    """A classifier's scores, which stand beside their meta, and the panel that shows them."""

    label: str
    panel: str
    scores: ScoreColumn


class SpeedConfig(StageConfig):
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
    scores: ScoreColumn


class PerEpisodeConfig(StageConfig):
    """Draw how the accuracies of single episodes of two rows of a table are distributed."""

    stage_version: int = 1
    rows: tuple[str, str]
    cells: tuple[PerEpisodeCell, ...]
    note: str
