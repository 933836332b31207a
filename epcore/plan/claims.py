"""The config of the stage that judges claims: contrasts written out over the cells of tables."""

from collections.abc import Iterator
from functools import cache, cached_property

from epcore.config.claims import Claim, ClaimSettings, Contrast, Term
from epcore.config.load import read
from epcore.errors import UserError
from epcore.plan import paths
from epcore.plan.figures import WITH_NUMBERS, Figures
from epcore.plan.registry import Registry
from epcore.plan.tables import Tables
from epcore.report.claim_config import (
    Case,
    ClaimCell,
    ClaimsConfig,
    JudgedClaim,
    JudgedContrast,
    parts_of,
)
from epcore.report.printed import Place, read_printed
from epcore.report.table_settings import Table
from epcore.report.text_table import CsvLine
from epcore.settings import pick

FILE = "claims.yaml"
STAND_IN = (
    " This run is not on the paper's data: its verdicts are on the method as it works there, and "
    "can refute no claim about ImageNet"
)


class Claims:
    """The claims, and the cells of every table that they may name.

    cells: by `table/block/row/column`. literature: cells of rows that others published, if the
    paper prints them or a scale may run their method.
    """

    def __init__(self, registry: Registry, tables: Tables, figures: Figures) -> None:
        self._registry, self._tables, self._figures = registry, tables, figures
        self.cells: dict[str, ClaimCell] = {}
        self.literature: list[str] = []
        for name, table in self._tables.every.items():
            self._add(name, table)

    @cached_property
    def settings(self) -> ClaimSettings:
        return read(self._registry.config, FILE, ClaimSettings)

    @cache  # noqa: B019 - a plan lives as long as the program
    def stage(self) -> ClaimsConfig:
        """The config of the stage `claims`.

        Raises:
            UserError: naming a cell that no table has.
        """
        registry = self._registry
        claims = [self._judged(claim, ours=False) for claim in self.settings.paper]
        claims += [self._judged(claim, ours=True) for claim in self.settings.ours]
        used = sorted({cell for claim in claims for cell in claim.cells})
        measured = (self.cells[cell].measured for cell in used)
        figures = {number.figure for claim in claims for number in claim.numbers}
        tables = self._tables.every
        return ClaimsConfig(
            title="The claims, judged by the numbers that the paper prints and by this run",
            notes=registry.scale.note + STAND_IN * (not registry.scale.comparable),
            seeds=registry.seeds,
            comparable=registry.scale.comparable,
            claims=tuple(claims),
            cells={cell: self.cells[cell] for cell in used},
            tables=tuple(sorted({parts_of(cell)[0] for cell in measured if cell})),
            figures=tuple(sorted(figures & self._figures.jobs.keys())),
            papers={name: table.paper for name, table in tables.items() if table.paper},
        )

    @property
    def inputs(self) -> dict[str, list[str]]:
        """The files that claims are judged by: tests behind tables, numbers of figures."""
        path, stage = self._registry.path, self.stage()
        figures = (path(paths.FIGURE, figure=name) for name in stage.figures)
        return {
            "tests": [path(paths.TABLE_TESTS, table=name) for name in stage.tables],
            "numbers": [figure.replace(".pdf", ".csv") for figure in figures],
        }

    # -- cells ------------------------------------------------------------------------------------

    def _add(self, name: str, table: Table) -> None:
        """Adds the cells of a table."""
        printed = self._printed(table.paper)
        cells = self._tables.cells_if_shown(name)
        measured = {(c.block.name, c.row.name, c.column.name): c.run for c in cells}
        # Of ImageNet-FS a row of the literature has its method in another block.
        methods = {(run.recipe, place[2]): place for place, run in reversed(measured.items())}
        for block, row, column in table.places:
            place = (block.name, row.name, column.name)
            cell = "/".join((name, *place))
            measured_place = (
                place if place in measured else methods.get((row.method or "", column.name))
            )
            paper = printed.get((block.name, row.paper or row.name, column.name))
            self.cells[cell] = ClaimCell(
                printed=paper["accuracy"] if paper else "",
                printed_interval=paper["interval"] if paper else "",
                measured="/".join((name, *measured_place)) if measured_place else "",
            )
            if row.source and (paper or row.method):  # not the authors' re-run
                self.literature.append(cell)

    def _printed(self, paper: str | None) -> dict[Place, CsvLine]:
        return read_printed(self._registry.config / "paper" / f"{paper}.csv") if paper else {}

    # -- claims -----------------------------------------------------------------------------------

    def _judged(self, claim: Claim, ours: bool) -> JudgedClaim:
        location = f"config/{FILE}, {claim.id}"
        for number in claim.numbers:
            pick(dict.fromkeys(WITH_NUMBERS), number.figure, "figure", location)
        return JudgedClaim(
            **claim.model_dump(exclude={"contrasts"}),
            ours=ours,
            contrasts=tuple(
                JudgedContrast(
                    **contrast.model_dump(exclude={"plus", "minus", "rivals"}),
                    cases=tuple(self._cases(contrast, location)),
                )
                for contrast in claim.contrasts
            ),
        )

    def _cases(self, contrast: Contrast, location: str) -> Iterator[Case]:
        """Every term of `plus` with every term of `minus`."""
        for term in contrast.plus:
            for cell in self._matching(_cells(term)[0], location):
                plus = self._filled(term, cell, location)
                if contrast.rivals is not None:
                    rivals = self._rivals(cell, contrast.rivals == "table")
                    yield Case(name=_name(plus, ()), plus=plus, rivals=rivals)
                elif not contrast.minus:
                    yield Case(name=_name(plus[:1], plus[1:]), plus=plus[:1], minus=plus[1:])
                for subtracted in contrast.minus:
                    minus = self._filled(subtracted, cell, location)
                    yield Case(
                        name=_name(plus, minus),
                        plus=(*plus[:1], *minus[1:]),
                        minus=(*plus[1:], *minus[:1]),
                    )

    def _matching(self, pattern: str, location: str) -> list[str]:
        """The cells of a pattern in which * stands for every block, row or column."""
        parts = parts_of(pattern)
        cells = [
            cell
            for cell in self.cells
            if cell.startswith(f"{parts[0]}/")
            and all(
                part in ("*", cell_part)
                for part, cell_part in zip(parts, parts_of(cell), strict=True)
            )
        ]
        if not cells:
            raise UserError(f"{location}: no table has such cells as {pattern}")
        return cells

    def _filled(self, term: Term, cell: str, location: str) -> tuple[str, ...]:
        """The cells of a term, in which * is what `cell` has in that place."""
        cell_parts = parts_of(cell)
        filled = tuple(
            "/".join(
                place if part == "*" else part
                for part, place in zip(parts, cell_parts, strict=True)
            )
            for parts in map(parts_of, _cells(term))
        )
        for name in filled:
            pick(self.cells, name, "cell (table/block/row/column)", location)
        return filled

    def _rivals(self, cell: str, anywhere: bool) -> tuple[str, ...]:
        """The other rows of the literature in the column, of the block or of the whole table."""
        table, block, _, column = parts_of(cell)
        return tuple(
            rival
            for rival in self.literature
            for of_table, of_block, _, of_column in [parts_of(rival)]
            if (of_table, of_column) == (table, column) and rival != cell
            if anywhere or of_block == block
        )


def _cells(term: Term) -> tuple[str, ...]:
    return (term,) if isinstance(term, str) else term


def _name(plus: tuple[str, ...], minus: tuple[str, ...]) -> str:
    """The parts that all cells share, then those that differ: "CONV-4 mini1: exp4 over exp3".

    A table without blocks has one named "-", which is left out.
    """
    cells = [parts_of(cell) for cell in (*plus, *minus)]
    if len(cells) == 1:
        return "/".join(cells[0][1:]).removeprefix("-/")
    distinguishing = [place for place in range(4) if len({cell[place] for cell in cells}) > 1]
    shared = " ".join(cells[0][place] for place in range(1, 4) if place not in distinguishing)

    def short(side: tuple[str, ...]) -> str:
        names = ["/".join(parts_of(cell)[place] for place in distinguishing) for cell in side]
        return names[0] if len(names) == 1 else f"({' over '.join(names)})"

    over = " over ".join(short(side) for side in (plus, minus) if side)
    return f"{shared}: {over}".removeprefix(": ").removeprefix("- ")
