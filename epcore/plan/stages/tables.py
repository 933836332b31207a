"""The stage that makes a table from scores."""

from epcore.plan.settings import Settings
from epcore.plan.stages import Stage
from epcore.plan.stages.training import Training
from epcore.plan.table_models import Table


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
