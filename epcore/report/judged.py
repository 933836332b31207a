"""Each claim with its three verdicts: printed numbers, printed intervals, this run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from epcore.errors import UserError
from epcore.report.claim_config import ClaimsConfig, JudgedClaim, SignedNumber, parts_of
from epcore.report.scores import read_test
from epcore.report.statistics import Estimate, of_printed, of_trainings, without_error
from epcore.report.text_table import CsvLine, read_tests
from epcore.report.verdicts import (
    CaseVerdict,
    Evidence,
    Verdict,
    Word,
    conjunction,
    covered,
    judge_estimates,
    judge_products,
)
from epcore.settings import suggest


@dataclass(frozen=True)
class Judged:
    """A claim and its verdicts; `reason` says why this run is not asked, if it is not."""

    claim: JudgedClaim
    printed: Verdict
    printed_intervals: Verdict
    this_run: Verdict
    reason: str


@dataclass(frozen=True)
class Measured:
    """The tests of a cell, one for each seed, with the accuracies of their episodes `(n,)`."""

    tests: list[CsvLine]
    accuracies: list[np.ndarray]

    @property
    def draw(self) -> str:
        return self.tests[0]["draw"]


def read_measured(config: ClaimsConfig, tests: Sequence[Path]) -> dict[str, Measured]:
    """The cells that this run measures.

    Args:
        config: the claims.
        tests: the tests behind each of `config.tables`.

    Raises:
        UserError: if a table or score file is damaged, or another than when the table was made.
    """
    frames = {table: read_tests(file) for table, file in zip(config.tables, tests, strict=True)}

    def measured(cell: str) -> Measured:
        table, block, row, column = parts_of(cell)
        lines = frames[table][block, row, column]
        return Measured(lines, [read_test(line) for line in lines])

    cells = config.cells.items()
    return {name: measured(cell.measured) for name, cell in cells if cell.measured}


def judge(
    config: ClaimsConfig, measured: Mapping[str, Measured], numbers: Mapping[str, Path]
) -> list[Judged]:
    """Judges all claims, in their order.

    Args:
        config: the claims.
        measured: the cells of this run.
        numbers: figure -> the file of its numbers.

    Raises:
        UserError: if a file lacks the number that a claim names.
    """

    def estimate(terms: Sequence[tuple[float, str]]) -> Estimate:
        cells = [(weight, measured[name]) for weight, name in terms]
        return of_trainings([(weight, cell.accuracies, cell.draw) for weight, cell in cells])

    def values(terms: Sequence[tuple[float, str]]) -> list[float]:
        return [weight * float(config.cells[name].printed) for weight, name in terms]

    def as_printed(terms: Sequence[tuple[float, str]]) -> Estimate:
        return without_error(values(terms))

    def with_intervals(terms: Sequence[tuple[float, str]]) -> Estimate:
        intervals = [weight * float(config.cells[n].printed_interval) for weight, n in terms]
        return of_printed(values(terms), intervals)

    printed = {name for name, cell in config.cells.items() if cell.printed}
    with_interval = {name for name in printed if config.cells[name].printed_interval}
    numbers_printed = Evidence(printed, printed, as_printed)
    intervals_printed = Evidence(printed, with_interval, with_intervals)
    run = Evidence(printed | measured.keys(), measured.keys(), estimate)
    judged = []
    for claim in config.claims:
        if claim.numbers:
            this_run = _judge_numbers(claim.numbers, numbers)
        else:
            this_run = judge_estimates(_askable(claim, config), run)
        reason = _reason(claim, config) if this_run.word == "not asked" else ""
        by_numbers = by_intervals = Verdict("not asked")
        if not claim.ours:
            by_numbers = (
                judge_products(claim)
                if claim.products
                else judge_estimates(covered(claim, numbers_printed), numbers_printed)
            )
            by_intervals = judge_estimates(claim, intervals_printed)
        judged.append(Judged(claim, by_numbers, by_intervals, this_run, reason))
    return judged


def _askable(claim: JudgedClaim, config: ClaimsConfig) -> JudgedClaim:
    """The claim without the contrasts that this run cannot be asked of."""
    if len(config.seeds) < claim.trainings:
        return claim.model_copy(update={"contrasts": ()})
    contrasts = tuple(c for c in claim.contrasts if config.comparable or not c.is_accuracy)
    return claim.model_copy(update={"contrasts": contrasts})


def _reason(claim: JudgedClaim, config: ClaimsConfig) -> str:
    """Why this run says nothing of a claim, and what does."""
    if claim.products:
        return "Arithmetic on numbers of the text; no run bears on it."
    if claim.numbers:
        figures = ", ".join(claim.figures)
        return f"This scale does not draw {figures}; --config scale=paper does."
    if len(config.seeds) < claim.trainings:
        return f"Needs {claim.trainings} trainings: --config seeds={claim.trainings}."
    if all(contrast.is_accuracy for contrast in claim.contrasts) and not config.comparable:
        return "A number on ImageNet, which a run on other data cannot have."
    cells = ((name, config.cells[name]) for name in claim.cells)
    absent = [name for name, cell in cells if not cell.measured]
    rows = ", ".join(dict.fromkeys(parts_of(cell)[2] for cell in absent))
    tables = ", ".join(dict.fromkeys(f"tables/{parts_of(cell)[0]}.tex" for cell in absent))
    return f"This scale does not run {rows} ({tables}); --config scale=paper does."


def _judge_numbers(numbers: Sequence[SignedNumber], files: Mapping[str, Path]) -> Verdict:
    """Judges numbers of figures by the intervals beside them."""
    cases = tuple(_judge_number(n, files[n.figure]) for n in numbers if n.figure in files)
    return Verdict(conjunction(case.word for case in cases), cases)


def _judge_number(number: SignedNumber, file: Path) -> CaseVerdict:
    """Judges a number of a figure.

    Raises:
        UserError: if the figure has no such number.
    """
    table = pd.read_csv(file).set_index("name")
    if number.number not in table.index:
        known = suggest(number.number, [*table.index])
        raise UserError(f"config/claims.yaml: {file} has no number {number.number!r}{known}")
    value, low, high = table.loc[number.number, ["value", "low", "high"]].astype(float)
    below, above = high < 0, low > 0
    if number.sign == "below zero":
        word: Word = "holds" if below else "fails" if above else "open"
    else:
        word = "holds" if above else "fails" if below else "open"
    return CaseVerdict(number.number, value, (high - low) / 2, word)
