"""The tables of config/tables, and the part of one that a scale shows."""

from pathlib import Path

from epcore.config.load import read_yaml
from epcore.config.names import Name
from epcore.config.scale import TablePart
from epcore.errors import UserError
from epcore.plan.checks import check_unique, short_path
from epcore.plan.recipes import Recipes
from epcore.plan.registry import Registry
from epcore.report.table_settings import Block, Column, Row, Table
from epcore.settings import pick, validate


def read_tables(registry: Registry) -> dict[str, Table]:
    """Every table by its name.

    Raises:
        UserError: that names the file, the key and the remedy.
    """
    files = sorted((registry.config / "tables").glob("*.yaml"), key=lambda path: path.stem)
    return {path.stem: _read(path, registry) for path in files}


def _read(path: Path, registry: Registry) -> Table:
    file, recipes = short_path(path), registry.recipes
    validate(Name, path.stem, file)
    table: Table = validate(Table, read_yaml(path), file)
    blocks = tuple(_with_classifiers(block, recipes, file) for block in table.blocks)
    table = table.model_copy(update={"blocks": blocks})
    check_unique([column.name for column in table.columns], "column", file)
    check_unique([block.name for block in table.blocks], "block", file)
    for printed in table.printed:
        if not (registry.config / "paper" / f"{printed}.csv").is_file():
            raise UserError(f"{file}: {printed}.csv is not in config/paper")
    for column in table.columns:
        pick(table.groups, column.dataset, "group", f"{file}, {column.name}")
    for block in table.blocks:
        location = f"{file}, {block.name}"
        check_unique([row.name for row in block.rows], "row", location)
        if block.backbone is not None:
            pick(registry.backbones, block.backbone, "backbone", location)
        ours = {row.name: row for row in block.rows if row.recipe is not None}
        for row in block.rows:
            place = f"{location}, {row.name}"
            for mark in row.marks:
                pick(dict.fromkeys(table.marks), mark, "mark", place)
            if row.backbone is not None:
                pick(registry.backbones, row.backbone, "backbone", place)
            if row.baseline is not None and row.baseline not in ours:
                baselines = {**ours, **dict.fromkeys(recipes.names)}
                recipe = row.baseline.partition("+")[0]
                pick(baselines, recipe, "row of ours or recipe", f"{place}, baseline")
            if row.method is not None and table.imagenet_fs is None:
                recipes.check(row.method, f"{place}, method")
            if row.recipe is not None:
                recipes.check(row.recipe, place)
                for column in table.columns:
                    _check_protocol(row, column, registry, f"{place}, {column.name}")
    return table


def _with_classifiers(block: Block, recipes: Recipes, location: str) -> Block:
    """The block with a row for each of its classifiers, and no row of one that cannot be used."""
    rows = list(block.rows)
    if (classifiers := block.classifiers) is not None:
        place = f"{location}, {block.name}, classifiers"
        baseline = classifiers.baseline
        is_row = baseline in [row.name for row in block.rows]
        for name in recipes.classifiers if classifiers.names is None else classifiers.names:
            choice = pick(recipes.classifiers, name, "entry of classifiers.yaml", place)
            row = {
                "name": name,
                "label": choice.label,
                "recipe": f"{classifiers.recipe}+{name}",
                "baseline": baseline if is_row else f"{baseline}+{name}",
            }
            rows.append(validate(Row, row, f"{place}, {name}"))
    usable = tuple(row for row in rows if recipes.is_usable(row.recipe))
    return block.model_copy(update={"rows": usable})


def _check_protocol(row: Row, column: Column, registry: Registry, location: str) -> None:
    protocol = pick(registry.protocols, protocol_of(row, column), "protocol", location)
    validation = f"val-5way-{protocol.checkpoint_shot}shot"
    pick(registry.protocols, validation, "protocol", location)


def part_of(table: Table, part: TablePart, location: str) -> Table:
    """What a scale shows of a table.

    Raises:
        UserError: if the table lacks what the part names.
    """
    blocks = {block.name: block for block in table.blocks}
    datasets = {column.dataset: None for column in table.columns}
    rows = {row.name: None for block in table.blocks for row in block.rows}
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


def _with_rows(block: Block, names: tuple[str, ...], location: str) -> Block:
    """The block with some of its rows; differences are to rows that stay."""
    rows = tuple(row for row in block.rows if row.name in names)
    left_out = {row.name for row in block.rows} - {*names}
    for row in rows:
        if row.baseline in left_out:
            raise UserError(
                f"{location}: the differences of {row.name!r} are to {row.baseline!r}, which is "
                "not listed",
                "add it",
            )
    return block.model_copy(update={"rows": rows})


def protocol_of(row: Row, column: Column) -> str:
    """The protocol of a cell of ours."""
    return column.protocol if row.unlabeled is None else f"{column.protocol}-u{row.unlabeled}"
