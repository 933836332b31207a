"""The stage that makes a table from scores."""

from epcore.plan import paths
from epcore.plan.settings import Settings
from epcore.plan.stages import Stage
from epcore.plan.stages.scores import ScoreColumn
from epcore.plan.stages.training import Training
from epcore.plan.table_models import Table


class MeasuredCell(Settings):
    """One cell of ours and one seed: the files of its per-episode scores and its checkpoint's meta.

    `baseline` are the scores of the same seed that its paired difference is to, unless they are its
    own; `trainings` made the checkpoint, if the table tells of them; `tells_of_classifier` says
    whether the table shows what the meta of the scores says of their classifier.
    """

    block: str
    row: str
    column: str
    seed: int
    scores: ScoreColumn
    checkpoint_meta: str
    baseline: ScoreColumn | None
    trainings: tuple[Training, ...] = ()
    tells_of_classifier: bool = False

    @property
    def files(self) -> list[str]:
        """All that it is measured from."""
        scores = [column.file for column in (self.scores, self.baseline) if column]
        metas = [paths.meta(self.scores.file)] if self.tells_of_classifier else []
        curves = [file for training in self.trainings for file in training.files]
        return [*scores, self.checkpoint_meta, *metas, *curves]


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
