"""What the table stages are told: cells of ours, rows of the literature, captions."""

from dataclasses import dataclass, replace
from functools import cache

from epcore.markup import literal
from epcore.plan import paths
from epcore.plan.captions import caption_of, this_run
from epcore.plan.registry import Registry, protocol_of
from epcore.plan.run import Run
from epcore.plan.runs import Runs
from epcore.plan.stages import (
    AggregateStage,
    LatexBlock,
    LatexColumn,
    LatexRow,
    LatexStage,
    MeasuredCell,
    TableRow,
)
from epcore.plan.table_models import Block, Column, Row, Table

TRAINING = (
    "*Pretraining*, *fine-tuning*: the epoch after which the learning rate first fell, "
    "and in brackets the epochs trained; of fine-tuning in the order of the columns, once if they "
    "agree."
)
ASSUMPTIONS = (
    "T: transductive, all queries of an episode are classified together; S: takes unlabeled "
    "images; B: assumes that each class has as many queries as any other."
)
ANNEALED = (
    " At this scale the rate of pretraining falls along a cosine, after every epoch and whatever "
    "the validation says, so that the plateau matters in fine-tuning alone."
)


@dataclass(frozen=True)
class TableRun:
    """A run that a table shows, and where; `baseline` is the run that its difference is to."""

    block: Block
    row: Row
    column: Column
    run: Run
    baseline: Run | None


class Tables:
    """The tables of a scale; methods named after a stage say what it is told of one."""

    def __init__(self, registry: Registry, runs: Runs) -> None:
        self._registry, self._runs = registry, runs

    @property
    def covered(self) -> list[str]:
        """The tables that this scale has cells of."""
        return [name for name in self._registry.tables if self.runs(name)]

    @cache  # noqa: B019 - a plan lives as long as the program
    def runs(self, name: str) -> list[TableRun]:
        """Those of rows of ours that this scale has the data set and backbone of, of each seed."""
        scale = self._registry.scale
        return [
            self._run(name, block, row, column, seed)
            for table in [self._registry.table(name)]
            for block in table.blocks
            if block.backbone in scale.backbones
            for row in block.rows
            if self._recipe(name, row) is not None
            for column in table.columns
            if column.dataset in scale.columns
            for seed in self._registry.seeds
        ]

    def _recipe(self, table: str, row: Row) -> str | None:
        """That of a row of ours, or of one of the literature that this scale runs here."""
        here = table in self._registry.scale.compared.tables
        return row.recipe or (row.method if here else None)

    def _run(self, table: str, block: Block, row: Row, column: Column, seed: int) -> TableRun:
        run = Run(
            dataset=self._registry.scale.columns[column.dataset],
            backbone=str(block.backbone),
            recipe=str(self._recipe(table, row)),
            seed=seed,
            protocol=protocol_of(row, column),
        )
        baseline = None
        if row.baseline is not None:
            other = next(each for each in block.rows if each.name == row.baseline)
            protocol = protocol_of(other, column)
            baseline = replace(run, recipe=str(other.recipe), protocol=protocol)
        if row.baseline_recipe is not None:
            baseline = replace(run, recipe=row.baseline_recipe)
        return TableRun(block, row, column, run, baseline)

    def cells(self, name: str) -> list[MeasuredCell]:
        """The cells of a table, one for each seed."""
        table = self._registry.table(name)
        return [self._cell(each, table) for each in self.runs(name)]

    def _cell(self, at: TableRun, table: Table) -> MeasuredCell:
        scores, checkpoint = self._runs.scores(at.run), self._runs.checkpoint(at.run)
        baseline = self._runs.scores(at.baseline) if at.baseline else None
        return MeasuredCell(
            block=at.block.name,
            row=at.row.name,
            column=at.column.name,
            seed=at.run.seed,
            scores=scores,
            checkpoint_meta=paths.meta(self._runs.path(paths.CHECKPOINT, checkpoint)),
            baseline=baseline if baseline != scores else None,
            trainings=tuple(
                self._runs.trainings(checkpoint) if table.training or table.costs else ()
            ),
            method_meta=paths.meta(scores) if table.assumptions else "",
        )

    def printed_in(self, name: str) -> tuple[str, ...]:
        """The files of config/paper that a table shows: the paper's, then the re-run's."""
        return self._registry.table(name).printed

    @property
    def tested_files(self) -> list[str]:
        """The scores of every test of the tables."""
        shown = [at.run for name in self.covered for at in self.runs(name)]
        return sorted(set(map(self._runs.scores, shown)))

    # -- stages -----------------------------------------------------------------------------------

    def aggregate(self, name: str) -> AggregateStage:
        table = self._registry.table(name)
        return AggregateStage(
            table=name,
            rows=tuple(
                TableRow(
                    block=block.name,
                    row=row.name,
                    paper=row.paper or row.name,
                    source=row.source or f"this run, recipe {row.recipe}",
                    parameters=row.parameters,
                    baseline=row.baseline or row.baseline_recipe or "",
                )
                for block in table.blocks
                for row in block.rows
            ),
            columns=tuple(column.name for column in table.columns),
            cells=tuple(self.cells(name)),
        )

    def latex(self, name: str) -> LatexStage:
        table = self._registry.table(name)
        return LatexStage(
            label=table.label,
            caption=self._caption(name),
            first=table.first,
            marks=table.marks,
            printed=table.paper is not None,
            training=table.training,
            costs=table.costs,
            assumptions=table.assumptions,
            rerun=literal(table.rerun.source) if table.rerun else "",
            columns=tuple(
                LatexColumn(name=c.name, group=self._group(table, c.dataset), heading=c.heading)
                for c in table.columns
            ),
            blocks=tuple(
                LatexBlock(
                    block=block.name,
                    heading=self._heading(block),
                    rows=tuple(
                        LatexRow(
                            row=row.name,
                            label=row.label or literal(row.name),
                            source=literal(row.source),
                            marks=row.marks,
                        )
                        for row in block.rows
                    ),
                )
                for block in table.blocks
                if table.paper or block.backbone in (None, *self._registry.scale.backbones)
            ),
        )

    # -- captions ---------------------------------------------------------------------------------

    def _group(self, table: Table, column: str) -> str:
        """The paper's data set and the name of its stand-in, or the title of one's own."""
        scale, group = self._registry.scale, table.groups[column]
        dataset = scale.columns.get(column)
        if not group:
            return literal(self._registry.datasets[dataset].title) if dataset else ""
        return f"{group}, here {literal(dataset)}" if dataset and not scale.comparable else group

    def _heading(self, block: Block) -> str:
        """The backbone's name and size, or the block's name."""
        if block.backbone is None:
            return literal(block.name)
        label = literal(self._registry.sized(block.backbone))
        return f"{label}, {block.label}" if block.label else label

    def _caption(self, name: str) -> str:
        registry, table = self._registry, self._registry.table(name)
        shown = dict.fromkeys(column.dataset for column in table.columns)
        stand_in = [
            (f"{self._group(table, column)}: " if table.groups[column] else "")
            + literal(registry.datasets[dataset].caption)
            for column in shown
            if (dataset := registry.scale.columns.get(column))
        ]
        return caption_of(
            registry.scale,
            table.title,
            f"Data in the columns: {'; '.join(stand_in)}.",
            this_run(
                f"mean accuracy in % over {self._episodes(table)} test episodes",
                "with its 95\N{THIN SPACE}% interval",
                registry.seeds,
            ),
            "*Paper*: as printed." if table.paper else "",
            "*Authors' re-run*: as they printed it later, with one set of fine-tuning "
            "settings, which the default recipe follows."
            if table.rerun
            else "",
            self._training_columns(table) if table.training else "",
            ASSUMPTIONS if table.assumptions else "",
            table.notes,
            self._alike(name),
            own=not any(table.groups[column] for column in shown),
        )

    def _episodes(self, table: Table) -> int:
        """Of each cell; the protocols of a table agree."""
        count, protocols = self._registry.scale.episodes.novel, self._registry.protocols
        return min(count, *(protocols[c.protocol].episodes or count for c in table.columns))

    def _alike(self, name: str) -> str:
        """Where a row is the run that it is compared with, the caption says why it has no number.

        So the demo, which flips no images, is no other without flips.
        """
        scores = self._runs.scores
        if any(at.baseline and scores(at.baseline) == scores(at.run) for at in self.runs(name)):
            return "A row without a difference is, at this scale, the run that it is compared with."
        return ""

    def _training_columns(self, table: Table) -> str:
        """What the columns on the learning rate say at this scale."""
        runs = {(b.backbone, row.recipe) for b in table.blocks for row in b.rows if row.recipe}
        annealed = any(
            self._registry.recipe(str(recipe), str(backbone)).pretraining.schedule == "cosine"
            for backbone, recipe in runs
        )
        return TRAINING + ANNEALED * annealed
