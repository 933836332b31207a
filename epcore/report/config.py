"""The configs of tables, and of what tells of a whole run."""

from pathlib import Path

from epcore.files import curve_of, meta_of
from epcore.report.table_settings import Table
from epcore.settings import Settings, StageConfig


class ScoreColumn(Settings):
    """A column of a file of per-episode accuracies.

    A recipe's own test has a file to itself, whose column is `accuracy`. The entries of
    classifiers.yaml share a file for each checkpoint and protocol, with a column each.
    """

    file: str
    column: str = "accuracy"


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
        """The curve of the training, and the meta that says which epoch was kept."""
        checkpoint = Path(self.checkpoint)
        return str(curve_of(checkpoint, self.model)), str(meta_of(checkpoint))


class MeasuredCell(Settings):
    """One cell of ours and one seed: its run, its score file and the meta of its checkpoint.

    recipe, backbone: of ImageNet-FS a method and a network. baseline: the scores of the same seed
    that its paired difference is to, unless they are its own. trainings: what made the checkpoint,
    if the table tells of its costs. tells_of_classifier: whether the table shows what the meta of
    the scores says of their classifier. draw: cells with the same draw have the same support and
    query images, episode by episode.
    """

    block: str
    row: str
    column: str
    recipe: str
    backbone: str
    dataset: str
    protocol: str
    seed: int
    scores: ScoreColumn
    checkpoint_meta: str
    baseline: ScoreColumn | None
    trainings: tuple[Training, ...] = ()
    tells_of_classifier: bool = False
    draw: str

    @property
    def files(self) -> list[str]:
        """All files that the cell is measured from."""
        scores = [column.file for column in (self.scores, self.baseline) if column]
        metas = [str(meta_of(Path(self.scores.file)))] if self.tells_of_classifier else []
        metas += [training.files[1] for training in self.trainings]
        return [*scores, self.checkpoint_meta, *metas]


class TableConfig(StageConfig):
    """Collect a table's numbers and typeset them; see `epcore.report.statistics` for the intervals.

    `table` is that of the config with all rows and blocks that the scale has. `groups` stand above
    each column, `headings` above each block. They and the caption are in epcore.report.markup. The
    folder `energy` tells of earlier attempts at trainings.
    """

    stage_version: int = 11
    name: str
    table: Table
    caption: str
    groups: tuple[str, ...]
    headings: tuple[str, ...]
    cells: tuple[MeasuredCell, ...]
    energy: str

    @property
    def files(self) -> list[str]:
        """What its cells are measured from, each once."""
        return list(dict.fromkeys(file for cell in self.cells for file in cell.files))


class ReproductionConfig(StageConfig):
    """Typeset the reproduction: what a scale says of itself, by name, and what it makes."""

    stage_version: int = 3
    scale: str
    seeds: tuple[int, ...]
    facts: dict[str, str]
    tables: tuple[str, ...]
    figures: tuple[str, ...]


class EnvironmentConfig(StageConfig):
    """Sum up where jobs ran, from the metas that they wrote."""

    stage_version: int = 1
    title: str
    metas: tuple[str, ...]
