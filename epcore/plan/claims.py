"""The config of the stage that judges claims: predicates written out over cells of tables."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from typing import assert_never

from epcore.config.claims import (
    Arithmetic,
    Best,
    Claim,
    ClaimSettings,
    Equal,
    FigureNumber,
    Greater,
    InTable,
    Larger,
    Predicate,
    Rising,
    Side,
    Stated,
    UpTo,
    Within,
)
from epcore.config.load import read
from epcore.errors import UserError
from epcore.plan import paths
from epcore.plan.claim_cells import BASELINE, ClaimCells
from epcore.plan.figures import Figures
from epcore.plan.registry import Registry
from epcore.plan.tables import Tables
from epcore.report.claim_config import (
    ClaimCase,
    ClaimCell,
    ClaimCondition,
    ClaimNumber,
    ClaimsConfig,
    JudgedClaim,
)
from epcore.report.markup import literal
from epcore.settings import pick

FILE = "claims.yaml"
COMPARED = "compared"  # the table of the methods of the literature, trained here


class Claims:
    """The claims, as a scale can judge them."""

    def __init__(self, registry: Registry, tables: Tables, figures: Figures) -> None:
        self._registry, self._tables, self._figures = registry, tables, figures

    @cached_property
    def settings(self) -> ClaimSettings:
        return read(self._registry.config, FILE, ClaimSettings)

    @cached_property
    def _catalog(self) -> ClaimCells:
        return ClaimCells(self._registry, self._tables)

    @cache  # noqa: B019 - a plan lives as long as the program
    def stage(self) -> ClaimsConfig:
        """The config of the stage `claims`.

        Raises:
            UserError: naming a cell that no table has.
        """
        listed = [(claim, False) for claim in self.settings.paper]
        listed += [(claim, True) for claim in self.settings.ours]
        judged = tuple(self._judged(claim, ours) for claim, ours in listed)
        used = {cell for claim in judged for each in claim.conditions for cell in each.cells}
        scale = self._registry.scale
        note = literal(scale.note)
        if not scale.comparable:
            note += (
                " This run is not on the paper's data: its verdicts are on the method as it works "
                "there, and can refute no claim about ImageNet"
            )
        return ClaimsConfig(
            title="The claims, judged by the numbers that the paper prints and by this run",
            notes=note,
            seeds=self._registry.seeds,
            comparable=scale.comparable,
            claims=judged,
            cells={cell: self._catalog.cells[cell] for cell in sorted(used)},
            papers=self._catalog.papers,
        )

    @property
    def files(self) -> list[str]:
        """The scores and the figures' numbers by which claims are judged."""
        scores = {column.file for cell in self.stage().cells.values() for column in cell.scores}
        numbers = {n.file for claim in self.stage().claims for n in claim.numbers if n.file}
        return sorted(scores | numbers)

    def _judged(self, claim: Claim, ours: bool) -> JudgedClaim:
        where = f"config/{FILE}, {claim.id}"
        conditions = _told_apart(
            [each for predicate in claim.holds_if for each in self._conditions(predicate, where)]
        )
        numbers = [p for p in claim.holds_if if isinstance(p, FigureNumber)]
        tables = dict.fromkeys(_parts(cell)[0] for c in conditions for cell in c.cells)
        return JudgedClaim(
            **claim.model_dump(exclude={"holds_if"}),
            ours=ours,
            tables=tuple(tables),
            conditions=conditions,
            products=tuple(p for p in claim.holds_if if isinstance(p, Arithmetic)),
            numbers=tuple(self._number(number, where) for number in numbers),
            unasked=self._unasked(conditions, numbers),
        )

    def _unasked(self, conditions: Sequence[ClaimCondition], numbers: list[FigureNumber]) -> str:
        """What to say of a claim that this scale has no cells of: what to run, if anything."""
        cases = [case for condition in conditions for case in condition.cases]
        known, quoted = self._catalog.cells, self._catalog.quoted
        if cases and not any(_can_be_run(case, quoted) for case in cases):
            return "It compares with rows of the literature that no scale runs."
        if not any(known[cell].scores for case in cases for cell in case.plus):
            files = [f"figures/{number.figure}.pdf" for number in numbers]
            files += [f"tables/{_parts(cell)[0]}.tex" for case in cases for cell in case.cells]
            of = ", ".join(dict.fromkeys(files))
            return f"Not asked at this scale; --config scale=paper has it ({of})."
        others = [_parts(cell) for case in cases for cell in {*case.cells} - quoted - {*case.plus}]
        beside = [known.get("/".join((COMPARED, *at[1:])), ClaimCell()) for at in others]
        own = all(cell.scores for cell in beside)
        here = f", and tables/{COMPARED}.tex at this scale has them" if own else ""
        return (
            "It compares with rows of the literature, which are not run here; --config scale=small "
            f"runs those of {', '.join(sorted({at[1] for at in others}))}{here}."
        )

    # -- predicates -------------------------------------------------------------------------------

    def _conditions(self, predicate: Predicate, where: str) -> list[ClaimCondition]:
        match predicate:
            case Greater():
                cases = self._differences(predicate, predicate.than, where)
                return [ClaimCondition(cases=cases, low=predicate.by, above=True)]
            case Best():
                cases = self._margins(predicate, predicate.among == "table", where)
                return [ClaimCondition(cases=cases, low=0, above=True)]
            case Within(low=low, high=high):
                cases = self._differences(predicate, predicate.than, where)
                how = "mean" if predicate.of == "mean" else "every"
                return [ClaimCondition(cases=cases, how=how, low=low, high=high)]
            case UpTo():
                return self._up_to(predicate, where)
            case Larger():
                pairs = itertools.product(predicate.larger, predicate.smaller)
                cases = tuple(self._versus(one, other, where) for one, other in pairs)
                return [ClaimCondition(cases=cases, low=0, above=True)]
            case Rising():
                steps = [step for chain in predicate.cells for step in itertools.pairwise(chain)]
                cases = tuple(self._versus(later, before, where) for before, later in steps)
                return [ClaimCondition(cases=cases, low=0)]
            case Equal(pairs=pairs):
                cases = tuple(self._versus(one, other, where) for one, other in pairs)
                return [ClaimCondition(cases=cases, low=0, high=0)]
            case Stated(cell=cell, number=number):
                self._check(cell, where)
                half = 0.5 * 10.0**-predicate.decimals
                cases = (ClaimCase(name=cell, plus=(cell,)),)
                digits = predicate.decimals + 1
                low, high = round(number - half, digits), round(number + half, digits)
                return [ClaimCondition(cases=cases, low=low, high=high, absolute=True)]
            case Arithmetic() | FigureNumber():
                return []
            case _:
                assert_never(predicate)

    def _up_to(self, predicate: UpTo, where: str) -> list[ClaimCondition]:
        """None is a whole point more; one, that at `at` if it is given, is not less."""
        if predicate.than is None:
            cases = self._margins(predicate, anywhere=False, where=where)
        else:
            cases = self._differences(predicate, predicate.than, where)
        reaching = cases
        if predicate.at is not None:
            named = {case.name: case for case in cases}
            reaching = (pick(named, predicate.at, "cell", f"{where}, at"),)
        return [
            ClaimCondition(cases=reaching, how="some", low=predicate.points),
            ClaimCondition(cases=cases, high=predicate.points + 1),
        ]

    def _named(self, of: InTable, where: str) -> Iterator[tuple[str, str]]:
        """Each cell, and what it is called in a verdict."""
        found = False
        for cell in self._catalog.cells:
            if cell.endswith(BASELINE):
                continue
            table, block, row, column = _parts(cell)
            asked = block in (of.blocks or (block,)) and column in (of.columns or (column,))
            if table == of.table and row in of.rows and asked:
                found = True
                yield "/".join((block, row, column) if len(of.rows) > 1 else (block, column)), cell
        if not found:
            raise UserError(f"{where}: no table {of.table} has such cells of {', '.join(of.rows)}")

    def _differences(self, of: InTable, than: str | None, where: str) -> tuple[ClaimCase, ...]:
        """To the row `than`, or to what the table compares with."""
        cases = []
        for name, cell in self._named(of, where):
            table, block, _, column = _parts(cell)
            other = f"{table}/{block}/{than}/{column}" if than is not None else cell + BASELINE
            cases.append(ClaimCase(name=name, plus=(cell,), minus=(self._check(other, where),)))
        return tuple(cases)

    def _margins(self, of: InTable, anywhere: bool, where: str) -> tuple[ClaimCase, ...]:
        """To the best of the literature, in the block or anywhere in the table."""
        cases = []
        for name, cell in self._named(of, where):
            table, block, _, column = _parts(cell)
            rivals = [
                other
                for other in self._catalog.cells
                if other in self._catalog.literature and other != cell
                for t, b, _, c in [_parts(other)]
                if (t, c) == (table, column) and (anywhere or b == block)
            ]
            cases.append(ClaimCase(name=name, plus=(cell,), rivals=tuple(rivals)))
        return tuple(cases)

    def _versus(self, one: Side, other: Side, where: str) -> ClaimCase:
        """What `one` has more than `other`, which are cells or gains."""
        plus, minus = _terms(one)
        less, more = _terms(other)
        for cell in (*plus, *minus, *less, *more):
            self._check(cell, where)
        name = _versus_name(one, other)
        return ClaimCase(name=name, plus=(*plus, *more), minus=(*minus, *less))

    def _check(self, cell: str, where: str) -> str:
        pick(self._catalog.cells, cell, "cell (table/block/row/column)", where)
        return cell

    def _number(self, number: FigureNumber, where: str) -> ClaimNumber:
        settings = self._figures.settings
        names = {name.replace("_", "-"): None for name in type(settings).model_fields}
        names |= dict.fromkeys(settings.of_tables)
        pick(names, number.figure, "figure", where)
        file = ""
        if number.figure in self._figures.covered:
            figure = paths.FIGURE.format(scale=self._registry.scale_name, figure=number.figure)
            file = figure.replace(".pdf", "-numbers.csv")
        return ClaimNumber(**number.model_dump(exclude={"kind"}), file=file)


def _parts(cell: str) -> tuple[str, str, str, str]:
    """Table, block, row and column; names of rows may hold a slash."""
    table, block, *row, column = cell.split("/")
    return table, block, "/".join(row), column


def _terms(side: Side) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is added, and what is subtracted."""
    return ((side,), ()) if isinstance(side, str) else ((side[0],), (side[1],))


def _can_be_run(case: ClaimCase, quoted: Collection[str]) -> bool:
    """At some scale: none of its cells is a mere quotation, nor are all rivals."""
    no_quotation = not any(cell in quoted for cell in (*case.plus, *case.minus))
    return no_quotation and (not case.rivals or any(cell not in quoted for cell in case.rivals))


def _told_apart(conditions: list[ClaimCondition]) -> tuple[ClaimCondition, ...]:
    """Differences of one cell to several rows, each by its own name."""
    distinct = {(case.name, case.cells) for each in conditions for case in each.cases}
    named = Counter(name for name, _ in distinct)

    def apart(case: ClaimCase) -> ClaimCase:
        if named[case.name] == 1 or not case.minus:
            return case
        return case.model_copy(update={"name": _versus_name(case.plus[0], case.minus[0])})

    return tuple(
        each.model_copy(update={"cases": tuple(map(apart, each.cases))}) for each in conditions
    )


def _versus_name(one: Side, other: Side) -> str:
    """What all cells share, and then each by what is its own: "CONV-4 mini1: exp4 over exp3"."""
    cells = [_parts(cell) for side in (one, other) for cell in (*_terms(side)[0], *_terms(side)[1])]
    own = [place for place in range(4) if len({cell[place] for cell in cells}) > 1]
    shared = " ".join(cells[0][place] for place in range(1, 4) if place not in own)

    def called(side: Side) -> str:
        if isinstance(side, str):
            return "/".join(_parts(side)[place] for place in own)
        return f"({called(side[0])} over {called(side[1])})"

    return f"{shared}: {called(one)} over {called(other)}".removeprefix(": ")
