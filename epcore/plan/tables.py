"""The config of the table stage: the table as this scale has it, cells of ours, its caption."""

from dataclasses import dataclass, replace
from functools import cache, cached_property

from epcore.config.scale import TablePart
from epcore.plan import paths
from epcore.plan.captions import caption_of, this_run
from epcore.plan.imagenet_fs import ImageNetFs
from epcore.plan.imagenet_fs_tables import caption, with_runs
from epcore.plan.registry import Registry
from epcore.plan.run import Run
from epcore.plan.runs import Runs
from epcore.plan.table_files import part_of, protocol_of, read_tables
from epcore.report.config import MeasuredCell, TableConfig
from epcore.report.table_settings import Block, Column, Fact, Row, Table
from epcore.settings import pick

# What a caption says of the columns of a fact.
FACTS: dict[Fact, str] = {
    "parameters": "*Params*: of this run, in brackets as printed.",
    "assumptions": "T: transductive, all queries of an episode are classified together; S: takes "
    "unlabeled images; B: assumes that each class has as many queries as any other.",
    "seconds": "*s/1000*: processor time for 1000 episodes in seconds, features given, averaged "
    "over the columns; a measurement, so that another run has others.",
}


@dataclass(frozen=True)
class Cell:
    """A cell of this run with one seed; `baseline` is the run that its difference is to."""

    table: str
    block: Block
    row: Row
    column: Column
    run: Run
    baseline: Run | None


class Tables:
    """The tables of a scale."""

    def __init__(self, registry: Registry, runs: Runs, imagenet_fs: ImageNetFs | None) -> None:
        self._registry, self._runs, self._imagenet_fs = registry, runs, imagenet_fs

    @cached_property
    def every(self) -> dict[str, Table]:
        """Every table by its name, read once: an edit during a run counts for the next run."""
        return read_tables(self._registry)

    @property
    def _of_episodes(self) -> dict[str, Table]:
        """The tables of recipes that are tested on episodes; tables of ImageNet-FS are not."""
        return {name: table for name, table in self.every.items() if table.imagenet_fs is None}

    @cached_property
    def shown(self) -> dict[str, Table]:
        """What this scale shows of its tables, with the runs that it has of ImageNet-FS.

        Without ImageNet-FS it has none of its tables.
        """
        scale, file = self._registry.scale, self._registry.scale_file
        tables = self.every if self._imagenet_fs else self._of_episodes
        shown = {}
        for name in tables if scale.tables is None else sorted(set(scale.tables)):
            whole = pick(tables, name, "table", f"{file}, tables")
            table = part_of(whole, scale.parts.get(name, TablePart()), f"{file}, parts.{name}")
            if not table.paper:  # nor has a block without its backbone any number
                here = [b for b in table.blocks if b.backbone in (None, *scale.backbones)]
                table = table.model_copy(update={"blocks": tuple(here)})
            fs = self._imagenet_fs
            shown[name] = with_runs(table, fs, self._registry) if fs else table
        return shown

    @property
    def covered(self) -> list[str]:
        """The tables that this scale has cells of."""
        return [name for name in self.shown if self.cells(name)]

    def table(self, name: str) -> Table:
        """A table of this scale by its name."""
        return pick(self.shown, name, "table", f"{self._registry.config.name}/tables")

    def check_table(self, name: str, location: str) -> None:
        """Raises `UserError` unless there is such a table of recipes, at this scale or another."""
        pick(self._of_episodes, name, "table", location)

    def check_column(self, name: str, location: str) -> None:
        """Raises `UserError` unless a table has columns of a data set of the paper."""
        columns = {group: None for table in self._of_episodes.values() for group in table.groups}
        pick(columns, name, "column of the tables", location)

    def check(self) -> None:
        """Resolves every table of the scale.

        Raises:
            UserError: for a mistake in a table, or if the scale names what no table has.
        """
        scale, file = self._registry.scale, self._registry.scale_file
        for name in self.shown:
            self.stage(name)
        for name in scale.columns:
            self.check_column(name, f"{file}, columns")
        for name in scale.parts:
            pick(self.every, name, "table", f"{file}, parts")
        for name in scale.compared.tables:
            pick(self.every, name, "table", f"{file}, compared.tables")

    @cache  # noqa: B019 - a plan lives as long as the program
    def cells(self, name: str) -> list[Cell]:
        """The cells of rows of ours whose data set and backbone this scale has, one a seed."""
        table = self.table(name)
        return [
            self._cell(name, block, row, column, dataset, seed)
            for block in table.blocks
            for row in block.rows
            if self._recipe(name, row) is not None
            for column in table.columns
            if (dataset := self._dataset(block, row, column)) is not None
            for seed in self._registry.seeds
        ]

    def cells_if_shown(self, name: str) -> list[Cell]:
        """The cells of a table, none if this scale leaves it out."""
        return self.cells(name) if name in self.shown else []

    def _dataset(self, block: Block, row: Row, column: Column) -> str | None:
        """What this scale has in a column of a row, if it has that and the row's backbone."""
        scale = self._registry.scale
        if block.dataset is not None:
            return block.dataset
        backbone = row.backbone or block.backbone
        return scale.columns.get(column.dataset) if backbone in scale.backbones else None

    def _recipe(self, table: str, row: Row) -> str | None:
        """The recipe of a row of ours, or of the literature if this scale runs it in the table."""
        runs_methods = table in self._registry.scale.compared.tables
        return row.recipe or (row.method if runs_methods else None)

    def _cell(
        self, table: str, block: Block, row: Row, column: Column, dataset: str, seed: int
    ) -> Cell:
        run = Run(
            dataset=dataset,
            backbone=row.backbone or str(block.backbone),
            recipe=str(self._recipe(table, row)),
            seed=seed,
            protocol=protocol_of(row, column),
        )
        rows = {row.name: row for row in block.rows if row.recipe is not None}
        if row.baseline is None:
            baseline = None
        elif row.baseline in rows or block.dataset is not None:  # ImageNet-FS has rows alone
            location = f"{self._registry.config.name}/tables/{table}.yaml, {row.name}, baseline"
            baseline_row = pick(rows, row.baseline, "row", location)
            baseline = replace(
                run,
                backbone=baseline_row.backbone or str(block.backbone),
                recipe=str(baseline_row.recipe),
                protocol=protocol_of(baseline_row, column),
            )
        else:
            baseline = replace(run, recipe=row.baseline)
        return Cell(table, block, row, column, run, baseline)

    @cache  # noqa: B019
    def measured(self, name: str) -> list[MeasuredCell]:
        """The files behind each cell of a table."""
        table = self.table(name)
        return [self._measured(cell, table) for cell in self.cells(name)]

    def _measured(self, cell: Cell, table: Table) -> MeasuredCell:
        files = self._files(table)
        scores, baseline = files.scores(cell.run), cell.baseline and files.scores(cell.baseline)
        trainings = (
            self._runs.trainings(self._runs.checkpoint(cell.run)) if "costs" in table.facts else ()
        )
        return MeasuredCell(
            block=cell.block.name,
            row=cell.row.name,
            column=cell.column.name,
            **vars(cell.run),
            scores=scores,
            checkpoint_meta=paths.meta(files.trained(cell.run)),
            baseline=baseline if baseline != scores else None,
            trainings=tuple(trainings),
            tells_of_classifier=bool({"assumptions", "seconds"} & {*table.facts}),
            draw=self._draw(cell.run),
        )

    def _draw(self, run: Run) -> str:
        """The data set, and the first of the protocols that draw the same images.

        These protocols differ only in which images are labeled, and in the checkpoint. Of
        ImageNet-FS it is the exemplars of K: every measure of a trial has the same ones.
        """
        if run.protocol not in self._draws:
            return f"{run.dataset} exemplars-{run.protocol.rpartition('-')[2]}"
        return f"{run.dataset} {self._draws[run.protocol]}"

    @cached_property
    def _draws(self) -> dict[str, str]:
        """Protocol -> the first, by name, of those that draw the same images."""
        ignored = {"labeled", "unlabeled", "finetuned_shot", "chosen_on"}
        first: dict[str, str] = {}
        return {
            name: first.setdefault(protocol.model_dump_json(exclude=ignored), name)
            for name, protocol in sorted(self._registry.protocols.items())
        }

    def _files(self, table: Table) -> Runs | ImageNetFs:
        """What knows the files of a table's runs."""
        return self._imagenet_fs if self._imagenet_fs and table.imagenet_fs else self._runs

    def printed_files(self, name: str) -> list[str]:
        """The files of config/paper that a table shows: what the paper and a re-run print."""
        folder = self._registry.config / "paper"
        return [str(folder / f"{file}.csv") for file in self.table(name).printed]

    def stage(self, table: str) -> TableConfig:
        """The config of the stage `table`."""
        shown = self.table(table)
        return TableConfig(
            name=table,
            table=shown,
            caption=self._caption(table),
            groups=tuple(self._group(shown, column.dataset) for column in shown.columns),
            headings=tuple(map(self._heading, shown.blocks)),
            cells=tuple(self.measured(table)),
            energy=self._registry.path(paths.ENERGY),
        )

    # -- captions ---------------------------------------------------------------------------------

    def _group(self, table: Table, column: str) -> str:
        """The paper's data set and the name of its stand-in, or the title of one's own."""
        scale, group = self._registry.scale, table.groups[column]
        dataset = scale.columns.get(column)
        if not group:
            return self._registry.datasets[dataset].title if dataset else ""
        return f"{group}, here {dataset}" if dataset and not scale.comparable else group

    def _heading(self, block: Block) -> str:
        """The backbone's name and size, or the block's name."""
        if block.dataset is not None or block.backbone is None:
            return block.label or block.name
        label = self._registry.sized(block.backbone)
        return f"{label}, {block.label}" if block.label else label

    def _caption(self, name: str) -> str:
        registry, table = self._registry, self.table(name)
        if self._imagenet_fs is not None and table.imagenet_fs is not None:
            return caption(table, self._imagenet_fs, registry)
        shown = dict.fromkeys(column.dataset for column in table.columns)
        stand_in = [
            (f"{self._group(table, column)}: " if table.groups[column] else "")
            + registry.datasets[dataset].caption
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
            "*Paper*: as printed; –: not printed, or not run at this scale." if table.paper else "",
            *(FACTS.get(fact, "") for fact in table.facts),
            table.notes,
            self._alike(name),
            own=not any(table.groups[column] for column in shown),
        )

    def _episodes(self, table: Table) -> int:
        """How many episodes each cell has; the protocols of a table agree."""
        count, protocols = self._registry.scale.episodes.novel, self._registry.protocols
        return min(count, *(protocols[c.protocol].episodes or count for c in table.columns))

    def _alike(self, name: str) -> str:
        """The caption's sentence on rows that are the run that they are compared with.

        So the demo, which flips no images, is no other without flips.
        """
        cells = zip(self.cells(name), self.measured(name), strict=True)
        if any(cell.baseline and measured.baseline is None for cell, measured in cells):
            return "A row without a difference is, at this scale, the run that it is compared with."
        return ""
