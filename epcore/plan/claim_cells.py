"""Every cell that a claim may name: as printed, measured at this scale, both or neither."""

from functools import cached_property
from typing import Any

from epcore.plan.registry import Registry
from epcore.plan.run import Run
from epcore.plan.tables import TableRun, Tables
from epcore.report.claim_config import ClaimCell
from epcore.report.config import MeasuredCell, ScoreColumn
from epcore.report.printed import Cell, Place, read_printed
from epcore.report.table_settings import Table

BASELINE = " baseline"  # behind a cell: what its table compares it with
Measured = tuple[TableRun, MeasuredCell]


class ClaimCells:
    """Cells by `table/block/row/column`; `literature` are those of rows that others published.

    `quoted`: those of them that no scale measures, because their method is not here. `papers`:
    table -> the file of config/paper that prints it.
    """

    def __init__(self, registry: Registry, tables: Tables) -> None:
        self._registry, self._tables = registry, tables
        self.cells: dict[str, ClaimCell] = {}
        self.literature: set[str] = set()
        self.quoted: set[str] = set()
        self.papers: dict[str, str] = {}
        for name, table in registry.tables.every.items():
            self._add(name, table)

    def _add(self, name: str, table: Table) -> None:
        printed, measured = self._printed(table.paper), self._measured(name)
        self.papers |= {name: table.paper} if table.paper else {}
        # A row of the literature may have its method in another block, of which the first counts.
        methods: dict[tuple[str | None, str], list[Measured]] = {}
        for (_, _, column_name), found in measured.items():
            methods.setdefault((found[0][0].run.recipe, column_name), found)
        for block, row, column in table.places:
            at = (block.name, row.name, column.name)
            key = "/".join((name, *at))
            ours = measured.get(at) or methods.get((row.method, column.name), [])
            draw = self._draw(ours[0][0].run) if ours else ""
            place = (block.name, row.paper or row.name, column.name)
            scores = tuple(cell.scores for _, cell in ours)
            self.cells[key] = _cell(printed.get(place), scores, draw)
            if row.source:
                self.literature.add(key)
                self.quoted |= {key} if row.method is None else set()
            if row.baseline is not None or row.baseline_recipe is not None:
                # A row that is the run it is compared with has no baseline of its own.
                scores = tuple(cell.baseline or cell.scores for _, cell in ours)
                self.cells[key + BASELINE] = _cell(None, scores, draw)

    def _measured(self, name: str) -> dict[Place, list[Measured]]:
        """Block, row and column -> what stands there, of each seed."""
        found: dict[Place, list[Measured]] = {}
        if name in self._tables.covered:
            runs, cells = self._tables.runs(name), self._tables.cells(name)
            for at, cell in zip(runs, cells, strict=True):
                found.setdefault((cell.block, cell.row, cell.column), []).append((at, cell))
        return found

    def _printed(self, paper: str | None) -> dict[Place, Cell]:
        return read_printed(self._registry.config / "paper" / f"{paper}.csv") if paper else {}

    def _draw(self, run: Run) -> str:
        """The data set, and the first of the protocols that draw the same images.

        They differ in no more than which of them are labeled, and in the checkpoint. Of
        ImageNet-FS the exemplars of K: every measure of a trial is computed from the same ones.
        """
        if run.protocol not in self._drawn:
            _, _, shots = run.protocol.rpartition("-")
            return f"{run.dataset} exemplars-{shots}"
        same = [name for name in self._drawn if self._drawn[name] == self._drawn[run.protocol]]
        return f"{run.dataset} {min(same)}"

    @cached_property
    def _drawn(self) -> dict[str, dict[str, Any]]:
        but = {"labeled", "unlabeled", "finetuned_shot", "chosen_on"}
        protocols = self._registry.protocols
        return {name: protocol.model_dump(exclude=but) for name, protocol in protocols.items()}


def _cell(printed: Cell | None, scores: tuple[ScoreColumn, ...], draw: str) -> ClaimCell:
    if printed is None:
        return ClaimCell(scores=scores, draw=draw)
    accuracy, interval = printed["accuracy"], printed["interval"]
    return ClaimCell(printed=accuracy, printed_interval=interval, scores=scores, draw=draw)
