"""What the table stages are told: cells of ours, rows of the literature, captions."""

from collections.abc import Iterable
from functools import cached_property

from epcore.markup import literal
from epcore.plan import paths
from epcore.plan.figures import NetworkFigure
from epcore.plan.models import Block, Column, Row, Scale, ScaledBackbone, Table
from epcore.plan.registry import protocol_of
from epcore.plan.runs import Runs
from epcore.plan.stages import (
    AblationCell,
    AblationStage,
    AggregateStage,
    AlphaCandidate,
    AlphaStage,
    LatexBlock,
    LatexColumn,
    LatexRow,
    LatexStage,
    MeasuredCell,
    TableRow,
    told,
)

TRAINING = (
    "*Pretraining*, *fine-tuning*: the epoch after which the learning rate first fell, "
    "and in brackets the epochs trained; of fine-tuning in the order of the columns, once if they "
    "agree."
)
ANNEALED = (
    " At this scale the rate of pretraining falls along a cosine, after every epoch and whatever "
    "the validation says, so that the plateau matters in fine-tuning alone."
)


class TablePlan(Runs):
    """Runs, and what tables need of them and say."""

    def cells(self, name: str) -> list[MeasuredCell]:
        """The cells of ours that this scale has the data set and backbone of, for each seed."""
        return self._cells_of(self.table(name))

    def _cells_of(self, table: Table) -> list[MeasuredCell]:
        cells = []
        for block in table.blocks:
            rows = {row.name: row for row in block.rows}
            for row in block.rows:
                for column in table.columns:
                    if self._covers(block, row, column):
                        other = rows[row.baseline] if row.baseline else None
                        cells += [
                            self._cell(table, block, row, other, column, seed)
                            for seed in self.seeds
                        ]
        return cells

    def _cell(
        self, table: Table, block: Block, row: Row, other: Row | None, column: Column, seed: int
    ) -> MeasuredCell:
        run = self._run(block, row, column)
        scores = self.scores(*run, seed)
        baseline = self.scores(*self._run(block, other, column), seed) if other else None
        return MeasuredCell(
            block=block.name,
            row=row.name,
            column=column.name,
            seed=seed,
            scores=scores,
            checkpoint_meta=paths.meta(self.checkpoint_of(*run, seed)),
            baseline=baseline if baseline != scores else None,
            trainings=tuple(self.trainings_of(*run, seed) if table.training else ()),
        )

    def _covers(self, block: Block, row: Row, column: Column) -> bool:
        """Whether a cell is of ours and the scale has its data set and its backbone."""
        covered = column.dataset in self.scale.columns and block.backbone in self.scale.backbones
        return row.recipe is not None and covered

    def _run(self, block: Block, row: Row, column: Column) -> tuple[str, str, str, str]:
        """Data set, backbone, recipe and protocol of a cell of ours."""
        dataset = self.scale.columns[column.dataset]
        return dataset, str(block.backbone), str(row.recipe), protocol_of(row, column)

    @cached_property
    def _table_runs(self) -> list[tuple[str, str, str, str]]:
        """Data set, backbone, recipe and protocol of every cell of ours."""
        return [
            self._run(block, row, column)
            for table in self.tables.values()
            for block in table.blocks
            for row in block.rows
            for column in table.columns
            if self._covers(block, row, column)
        ]

    def tests(self) -> list[tuple[str, str, str, str]]:
        """Data set, backbone, recipe and protocol of all that tables and figures test, once."""
        figures = [*self.alpha_runs(), *self.interpolation_runs()]
        return list(dict.fromkeys([*self._table_runs, *figures]))

    @cached_property
    def _in_tables(self) -> dict[tuple[str, ...], dict[str, None]]:
        """Data set, backbone, recipe and name of checkpoints -> protocols that tables test them on.

        Of every seed; what figures alone test is of the first one.
        """
        return self._by_checkpoint(self._table_runs)

    @cached_property
    def _tested(self) -> dict[tuple[str, ...], dict[str, None]]:
        """The same of tables and figures."""
        tested = self._by_checkpoint([*self.alpha_runs(), *self.interpolation_runs()])
        shared = {key: found | tested.pop(key, {}) for key, found in self._in_tables.items()}
        return shared | tested

    def _by_checkpoint(
        self, runs: Iterable[tuple[str, str, str, str]]
    ) -> dict[tuple[str, ...], dict[str, None]]:
        tested: dict[tuple[str, ...], dict[str, None]] = {}
        for dataset, backbone, recipe, protocol in runs:
            shot = self.protocols[protocol].checkpoint_shot
            key = (dataset, backbone, *self.checkpoint(backbone, recipe, shot))
            tested.setdefault(key, {})[protocol] = None
        return tested

    @cached_property
    def suites(self) -> list[tuple[str, ...]]:
        """Protocols, split into what one job scores.

        That is what the same tables ask for of the same runs, so that no table waits for another's
        protocols; all of one checkpoint, so that its features are loaded once.
        """
        asked: dict[str, set[tuple[str, ...]]] = {name: set() for name in self.protocols}
        for name, table in self.tables.items():
            for block in table.blocks:
                for row in block.rows:
                    for column in table.columns:
                        if self._covers(block, row, column):
                            dataset, backbone, recipe, protocol = self._run(block, row, column)
                            owner = self.scores_recipe(backbone, recipe)
                            asked[protocol].add((name, dataset, backbone, owner))
        suites: dict[object, list[str]] = {}
        for name, by in asked.items():
            key = (self.protocols[name].checkpoint_shot, frozenset(by)) if by else name
            suites.setdefault(key, []).append(name)
        return [tuple(names) for names in suites.values()]

    def alpha_runs(self) -> list[tuple[str, str, str, str]]:
        """Data set, backbone, recipe and protocol of every candidate, if the scale has them."""
        return self._figure_runs(self.figures.alpha)

    def interpolation_runs(self) -> list[tuple[str, str, str, str]]:
        """The same of both networks of the interpolation."""
        return self._figure_runs(self.figures.interpolation)

    def _figure_runs(self, figure: NetworkFigure) -> list[tuple[str, str, str, str]]:
        dataset = self.scale.columns.get(figure.column)
        if dataset is None or figure.backbone not in self.scale.backbones:
            return []
        return [(dataset, figure.backbone, recipe, figure.protocol) for recipe in figure.recipes]

    def tested_protocols(
        self, dataset: str, backbone: str, recipe: str, checkpoint: str
    ) -> list[str]:
        """The protocols that a checkpoint is tested on in any table of this scale.

        Of a checkpoint that no table has, those of all checkpoints of its name.
        """
        key = (dataset, backbone, recipe, checkpoint)
        if key in self._tested:
            return list(self._tested[key])
        alike = [found for other, found in self._tested.items() if other[-1] == checkpoint]
        return list(dict.fromkeys(protocol for found in alike for protocol in found))

    def is_tested(self, dataset: str, backbone: str, recipe: str, checkpoint: str) -> bool:
        """Whether any table or figure of this scale tests a checkpoint."""
        return (dataset, backbone, recipe, checkpoint) in self._tested

    def alpha(self) -> str:
        return told(
            AlphaStage(
                candidates=tuple(
                    AlphaCandidate(
                        features=self.features_of(*run),
                        propagation=self.recipe(run[2], run[1]).propagation_in("testing"),
                    )
                    for run in self.alpha_runs()
                ),
                label_alphas=self.figures.alpha.label_alphas,
                note=self._note(self.figures.alpha.column, self.figures.alpha.backbone),
            )
        )

    def ablation(self, name: str = "ablation") -> str:
        """What is told of a table whose rows tick every combination of its marks."""
        table = self.table(name)
        rows = {(b.name, row.name): row for b in table.blocks for row in b.rows}
        return told(
            AblationStage(
                factors=table.marks,
                cells=tuple(
                    AblationCell(
                        seed=cell.seed,
                        block=cell.block,
                        paper=rows[cell.block, cell.row].paper or cell.row,
                        marks=rows[cell.block, cell.row].marks,
                        scores=cell.scores,
                    )
                    for cell in self.cells(name)
                ),
                note=self._note(table.columns[0].dataset, table.blocks[0].backbone),
            )
        )

    def _note(self, column: str, backbone: str | None) -> str:
        """What a figure's numbers are of."""
        dataset = self.scale.columns.get(column)
        title = self.datasets[dataset].caption if dataset else "no data"
        label = self._sized(backbone) if backbone else ""
        return f"scale {self.scale_name}: {title}, {label}"

    def _sized(self, backbone: str) -> str:
        """The backbone's name, with its size where this scale makes it smaller."""
        size = self.scale.backbones.get(backbone, ScaledBackbone())
        return f"{self.backbones[backbone].label}{size.shown}"

    @property
    def covered_figures(self) -> list[str]:
        """The figures that this scale has the runs of."""
        ablation = ["ablation"] if "ablation" in self.covered_tables else []
        alpha = ["alpha"] if self.alpha_runs() else []
        interpolation = ["interpolation"] if self.interpolation_runs() else []
        return ablation + alpha + ["two-moons", "decision-boundary"] + interpolation

    @property
    def ablation_tables(self) -> list[str]:
        """What the target ablation_pipeline builds of them."""
        return [name for name in self.covered_tables if name in ("ablation", "propagator")]

    @property
    def ablation_figures(self) -> list[str]:
        """The same of figures."""
        return [name for name in self.covered_figures if name in ("ablation", "alpha")]

    @property
    def covered_tables(self) -> list[str]:
        """The tables that this scale has cells of."""
        return [name for name in self.tables if self.cells(name)]

    def aggregate(self, name: str) -> str:
        table = self.table(name)
        return told(
            AggregateStage(
                table=name,
                rows=tuple(
                    TableRow(
                        block=block.name,
                        row=row.name,
                        paper=row.paper or row.name,
                        source=row.source or f"this run, recipe {row.recipe}",
                        parameters=row.parameters,
                        baseline=row.baseline or "",
                    )
                    for block in table.blocks
                    for row in block.rows
                ),
                columns=tuple(column.name for column in table.columns),
                cells=tuple(self.cells(name)),
            )
        )

    def latex(self, name: str) -> str:
        table = self.table(name)
        return told(
            LatexStage(
                label=table.label,
                caption=self._caption(table),
                first=table.first,
                marks=table.marks,
                printed=table.paper is not None,
                training=table.training,
                rerun=literal(table.rerun.source) if table.rerun else "",
                columns=tuple(
                    LatexColumn(name=c.name, group=table.groups[c.dataset], heading=c.heading)
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
                ),
            )
        )

    def _heading(self, block: Block) -> str:
        """The backbone's name and size, or the block's name."""
        if block.backbone is None:
            return literal(block.name)
        label = literal(self._sized(block.backbone))
        return f"{label}, {block.label}" if block.label else label

    def _episodes(self, table: Table) -> int:
        """Of each cell; the protocols of a table agree."""
        count = self.scale.episodes.novel
        return min(count, *(self.protocols[c.protocol].episodes or count for c in table.columns))

    def _caption(self, table: Table) -> str:
        shown = dict.fromkeys(column.dataset for column in table.columns)
        stand_in = [
            f"{table.groups[column]}: {literal(self.datasets[dataset].caption)}"
            for column in shown
            if (dataset := self.scale.columns.get(column))
        ]
        return caption_of(
            self.scale,
            table.title,
            f"Data in the columns: {'; '.join(stand_in)}.",
            this_run(
                f"mean accuracy in % over {self._episodes(table)} test episodes",
                "with its 95\N{THIN SPACE}% interval",
                self.seeds,
            ),
            "*Paper*: as printed." if table.paper else "",
            "*Authors' re-run*: as they printed it later, with one set of fine-tuning "
            "settings, which the default recipe follows."
            if table.rerun
            else "",
            self._training_columns(table) if table.training else "",
            table.notes,
            self._alike(table),
        )

    def _alike(self, table: Table) -> str:
        """Where a row is the run that it is compared with, the caption says why it has no number.

        So the demo, which flips no images, is no other without flips.
        """
        named = {
            (block.name, row.name): row.baseline for block in table.blocks for row in block.rows
        }
        cells = self._cells_of(table)
        if any(named[cell.block, cell.row] and cell.baseline is None for cell in cells):
            return "A row without a difference is, at this scale, the run that it is compared with."
        return ""

    def _training_columns(self, table: Table) -> str:
        """What the columns on the learning rate say at this scale."""
        runs = {(b.backbone, row.recipe) for b in table.blocks for row in b.rows if row.recipe}
        annealed = any(
            self.recipe(str(recipe), str(backbone)).pretraining.schedule == "cosine"
            for backbone, recipe in runs
        )
        return TRAINING + ANNEALED * annealed


def caption_of(scale: Scale, title: str, *parts: str) -> str:
    """The sentences of a caption, with what the scale says of itself; empty parts are left out."""
    stand_in = "**This run uses stand-in data: its numbers are not comparable with the paper's**"
    said = [title, literal(scale.note), *parts, "" if scale.comparable else stand_in]
    return " ".join(part.rstrip(".") + "." for part in said if part)


def this_run(measured: str, interval: str, seeds: tuple[int, ...]) -> str:
    """What a caption says of the numbers of this run; `interval` is that of one training."""
    if len(seeds) == 1:
        return (
            f"*This run*: {measured}, {interval}; one training each, so that an interval "
            "says nothing of another training."
        )
    return (
        f"*This run*: {measured} and {len(seeds)} trainings (seeds "
        f"{', '.join(map(str, seeds))}), with its 95\N{THIN SPACE}% interval over trainings. °No "
        "difference beyond that of trainings: its 95\N{THIN SPACE}% interval, paired by seed, "
        "holds zero."
    )
