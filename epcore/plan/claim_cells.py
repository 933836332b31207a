"""Every cell that a claim may name: as printed, measured at this scale, both or neither."""

import itertools
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from epcore.plan.imagenet_fs import COLUMNS, read_imagenet_fs
from epcore.plan.imagenet_fs_tables import PRINTED, ImageNetFsTables
from epcore.plan.printed import Cell, Place, read_printed
from epcore.plan.registry import Registry
from epcore.plan.run import Run
from epcore.plan.stages import ClaimCell, MeasuredCell
from epcore.plan.table_models import Table
from epcore.plan.tables import Tables

BASELINE = " baseline"  # behind a cell: what its table compares it with


class ClaimCells:
    """Cells by `table/block/row/column`; `literature` are those of rows that others published.

    `quoted`: those of them that no scale measures, because their method is not here. `papers`:
    table -> the file of config/paper that prints it.
    """

    def __init__(
        self, registry: Registry, tables: Tables, imagenet_fs_tables: ImageNetFsTables | None
    ) -> None:
        self._registry, self._tables, self._fs = registry, tables, imagenet_fs_tables
        self.cells: dict[str, ClaimCell] = {}
        self.literature: set[str] = set()
        self.quoted: set[str] = set()
        self.papers: dict[str, str] = {}
        for name, table in registry.every_table.items():
            self._add(name, table)
        self._add_imagenet_fs()

    def _add(self, name: str, table: Table) -> None:
        printed = self._printed(table.paper)
        self.papers |= {name: table.paper} if table.paper else {}
        covered = name in self._tables.covered
        measured = _by_place(self._tables.cells(name)) if covered else {}
        draws = {
            (at.block.name, at.row.name, at.column.name): self._draw(at.run)
            for at in (self._tables.runs(name) if covered else ())
        }
        for block in table.blocks:
            for row, column in itertools.product(block.rows, table.columns):
                at = (block.name, row.name, column.name)
                key = "/".join((name, *at))
                ours, draw = measured.get(at, []), draws.get(at, "")
                place = (block.name, row.paper or row.name, column.name)
                scores = tuple(cell.scores for cell in ours)
                self.cells[key] = _cell(printed.get(place), scores, draw)
                if row.source:
                    self.literature.add(key)
                    self.quoted |= {key} if row.method is None else set()
                if row.baseline is not None or row.baseline_recipe is not None:
                    # A row that is the run it is compared with has no baseline of its own.
                    scores = tuple(cell.baseline or cell.scores for cell in ours)
                    self.cells[key + BASELINE] = _cell(None, scores, draw)
            if block.classifiers is not None:
                for entry, column in itertools.product(self._registry.classifiers, table.columns):
                    key = f"{name}/{block.name}/{entry}/{column.name}"
                    # A scale may leave some out.
                    self.cells.setdefault(key, ClaimCell())
                    self.cells.setdefault(key + BASELINE, ClaimCell())

    def _add_imagenet_fs(self) -> None:
        """Printed rows; one with a method of ours has what it gives with the first network."""
        settings = read_imagenet_fs(self._registry.config)
        for name, table in settings.tables.items():
            printed = self._printed(table.paper)
            self.papers |= {name: table.paper} if table.paper else {}
            measured = self._fs.cells(name) if self._fs is not None else []
            columns = [f"{COLUMNS[m][0]}{k}" for m in table.measures for k in settings.shots]
            for row, column in itertools.product(table.printed, columns):
                ours = [c for c in measured if (c.row, c.column) == (row.method, column)]
                scores = tuple(c.scores for c in ours if c.block == ours[0].block)
                key = f"{name}/{PRINTED}/{row.name}/{column}"
                self.cells[key] = _cell(
                    printed.get((PRINTED, row.name, column)), scores, f"{name} {column}"
                )
                self.literature.add(key)
                self.quoted |= {key} if row.method is None else set()

    def _printed(self, paper: str | None) -> dict[Place, Cell]:
        return read_printed(self._registry.config / "paper" / f"{paper}.csv") if paper else {}

    def _draw(self, run: Run) -> str:
        """The data set, and the first of the protocols that draw the same images.

        They differ in no more than which of them are labeled, and in the checkpoint.
        """
        same = [name for name in self._drawn if self._drawn[name] == self._drawn[run.protocol]]
        return f"{run.dataset} {min(same)}"

    @cached_property
    def _drawn(self) -> dict[str, dict[str, Any]]:
        but = {"labeled", "unlabeled", "finetuned_shot"}
        protocols = self._registry.protocols
        return {name: protocol.model_dump(exclude=but) for name, protocol in protocols.items()}


def _by_place(cells: Iterable[MeasuredCell]) -> dict[tuple[str, str, str], list[MeasuredCell]]:
    """Those of each seed."""
    found: dict[tuple[str, str, str], list[MeasuredCell]] = {}
    for cell in cells:
        found.setdefault((cell.block, cell.row, cell.column), []).append(cell)
    return found


def _cell(printed: Cell | None, scores: tuple[str, ...], draw: str) -> ClaimCell:
    if printed is None:
        return ClaimCell(scores=scores, draw=draw)
    accuracy, interval = printed["accuracy"], printed["interval"]
    return ClaimCell(printed=accuracy, printed_interval=interval, scores=scores, draw=draw)
