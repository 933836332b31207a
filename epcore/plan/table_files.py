"""The tables of config/tables, and what a scale shows of them."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from epcore.config.load import read_yaml
from epcore.config.scale import TablePart
from epcore.errors import UserError
from epcore.plan.checks import check_name, check_unique, short_path
from epcore.report.table_settings import Block, Column, Row, Table
from epcore.settings import pick, validate

if TYPE_CHECKING:
    from epcore.plan.registry import Registry


class TableFiles:
    """Every table, and those of a scale. All methods raise `UserError`."""

    def __init__(self, registry: "Registry") -> None:
        self.config, self.recipes = registry.config, registry.recipes
        self.backbones, self.protocols = registry.backbones, registry.protocols
        self.scale, self.scale_file = registry.scale, registry.scale_file

    @cached_property
    def shown(self) -> dict[str, Table]:
        """The scale's tables; without ImageNet-FS none of its own."""
        tables = self._episode_tables if self.scale.imagenet_fs is None else self.every
        names = tables if self.scale.tables is None else sorted(set(self.scale.tables))
        for name in names:
            pick(tables, name, "table", f"{self.scale_file}, tables")
        return {name: self._part(name, tables[name]) for name in names}

    def _part(self, name: str, table: Table) -> Table:
        """What the scale shows of a table."""
        part, location = self.scale.parts.get(name, TablePart()), f"{self.scale_file}, parts.{name}"
        blocks = {block.name: block for block in table.blocks}
        datasets = {column.dataset: None for column in table.columns}
        rows = {row.name: None for block in table.blocks for row in block.rows}
        if part.rows is not None and table.imagenet_fs is not None:
            raise UserError(
                f"{location}.rows: a table of ImageNet-FS is shown with all of its rows",
                "delete the key",
            )
        for block in part.blocks or ():
            pick(blocks, block, "block", f"{location}.blocks")
        for dataset in part.columns or ():
            pick(datasets, dataset, "data set of a column", f"{location}.columns")
        for row in part.rows or ():
            pick(rows, row, "row", f"{location}.rows")
        shown = [block for name, block in blocks.items() if name in (part.blocks or blocks)]
        columns = [c for c in table.columns if c.dataset in (part.columns or datasets)]
        if part.rows is not None:
            shown = [_with_rows(block, part.rows, f"{location}.rows") for block in shown]
        return table.model_copy(update={"blocks": tuple(shown), "columns": tuple(columns)})

    @property
    def _episode_tables(self) -> dict[str, Table]:
        """The tables of recipes that are tested on episodes; tables of ImageNet-FS are not."""
        every = self.every.items()
        return {name: table for name, table in every if table.imagenet_fs is None}

    @cached_property
    def every(self) -> dict[str, Table]:
        """Every table by its name, read once: an edit during a run counts for the next run."""
        files = sorted((self.config / "tables").glob("*.yaml"), key=lambda path: path.stem)
        return {path.stem: self._read_table(path) for path in files}

    def check_table(self, name: str, location: str) -> None:
        """Raises `UserError` unless there is such a table of recipes, at this scale or another."""
        pick(self._episode_tables, name, "table", location)

    def check_column(self, name: str, location: str) -> None:
        """Raises `UserError` unless a table has columns of a data set of the paper."""
        columns = {group: None for table in self._episode_tables.values() for group in table.groups}
        pick(columns, name, "column of the tables", location)

    def check_columns(self) -> None:
        """Raises `UserError` unless the tables have what the scale names of them."""
        for name in self.scale.columns:
            self.check_column(name, f"{self.scale_file}, columns")
        for name in self.scale.parts:
            pick(self.every, name, "table", f"{self.scale_file}, parts")
        for name in self.scale.compared.tables:
            pick(self.every, name, "table", f"{self.scale_file}, compared.tables")

    def _read_table(self, path: Path) -> Table:
        check_name(path.stem, short_path(path))
        table: Table = validate(Table, read_yaml(path), short_path(path))
        with_classifiers = [
            self._with_classifiers(block, short_path(path)) for block in table.blocks
        ]
        blocks = tuple(map(self._usable, with_classifiers))
        table = table.model_copy(update={"blocks": blocks})
        check_unique([column.name for column in table.columns], "column", short_path(path))
        check_unique([block.name for block in table.blocks], "block", short_path(path))
        for file in table.printed:
            if not (self.config / "paper" / f"{file}.csv").is_file():
                raise UserError(f"{short_path(path)}: {file}.csv is not in config/paper")
        for column in table.columns:
            pick(table.groups, column.dataset, "group", f"{short_path(path)}, {column.name}")
        for block in table.blocks:
            location = f"{short_path(path)}, {block.name}"
            ours = {row.name: row for row in block.rows if row.recipe is not None}
            check_unique([row.name for row in block.rows], "row", location)
            if block.backbone is not None:
                pick(self.backbones, block.backbone, "backbone", location)
            for row in block.rows:
                for mark in row.marks:
                    pick(dict.fromkeys(table.marks), mark, "mark", f"{location}, {row.name}")
                if row.backbone is not None:
                    pick(self.backbones, row.backbone, "backbone", f"{location}, {row.name}")
                if row.baseline is not None:
                    pick(ours, row.baseline, "row of ours", f"{location}, {row.name}, baseline")
                if row.baseline_recipe is not None:
                    self.recipes.check(
                        row.baseline_recipe, f"{location}, {row.name}, baseline_recipe"
                    )
                if row.method is not None and table.imagenet_fs is None:
                    self.recipes.check(row.method, f"{location}, {row.name}, method")
                if row.recipe is not None:
                    self.recipes.check(row.recipe, f"{location}, {row.name}")
                    for column in table.columns:
                        self._check_protocol(row, column, f"{location}, {row.name}, {column.name}")
        return table

    def _with_classifiers(self, block: Block, location: str) -> Block:
        """The block with a row for each of its classifiers."""
        classifiers = block.classifiers
        if classifiers is None:
            return block
        rows = []
        place = f"{location}, {block.name}, classifiers"
        for name in self.recipes.classifiers if classifiers.names is None else classifiers.names:
            choice = pick(self.recipes.classifiers, name, "entry of classifiers.yaml", place)
            baseline_recipe = (
                f"{classifiers.baseline_recipe}+{name}" if classifiers.baseline_recipe else None
            )
            row = {
                "name": name,
                "label": choice.label,
                "recipe": f"{classifiers.recipe}+{name}",
                "baseline": classifiers.baseline,
                "baseline_recipe": baseline_recipe,
            }
            rows.append(validate(Row, row, f"{place}, {name}"))
        return block.model_copy(update={"rows": (*block.rows, *rows)})

    def _usable(self, block: Block) -> Block:
        """The block without the rows of classifiers that cannot be imported."""
        rows = tuple(row for row in block.rows if self.recipes.is_usable(row.recipe))
        return block.model_copy(update={"rows": rows})

    def _check_protocol(self, row: Row, column: Column, location: str) -> None:
        protocol = pick(self.protocols, protocol_of(row, column), "protocol", location)
        pick(self.protocols, f"val-5way-{protocol.checkpoint_shot}shot", "protocol", location)

    def table(self, name: str) -> Table:
        """A table of this scale by its name."""
        return pick(self.shown, name, "table", f"{self.config.name}/tables")


def _with_rows(block: Block, names: tuple[str, ...], location: str) -> Block:
    """The block with some of its rows; differences are to rows that stay."""
    rows = tuple(row for row in block.rows if row.name in names)
    for row in rows:
        if row.baseline is not None and row.baseline not in names:
            raise UserError(
                f"{location}: the differences of {row.name!r} are to {row.baseline!r}, which is "
                "not listed",
                "add it",
            )
    return block.model_copy(update={"rows": rows})


def protocol_of(row: Row, column: Column) -> str:
    """The protocol of a cell of ours."""
    return column.protocol if row.unlabeled is None else f"{column.protocol}-u{row.unlabeled}"
