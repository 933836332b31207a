"""Each claim with its three verdicts: printed numbers, printed intervals, this run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd

from epcore.files import reading
from epcore.report.claim_config import ClaimNumber, ClaimsConfig, JudgedClaim
from epcore.report.evidence import Estimate, of_printed, of_trainings
from epcore.report.scores import read_scores
from epcore.report.verdicts import Finding, Verdict, Word, by_intervals, by_print, joined


@dataclass(frozen=True)
class Judged:
    """A claim and what is found of it; `run_why` says why this run is not asked, if it is not."""

    claim: JudgedClaim
    printed: Verdict
    printed_intervals: Verdict
    this_run: Verdict
    run_why: str


def judge(config: ClaimsConfig) -> list[Judged]:
    """All claims, in their order."""
    read = cache(read_scores)

    def measured(terms: Sequence[tuple[float, str]]) -> Estimate:
        cells = [(weight, config.cells[name]) for weight, name in terms]
        scores = [[read(column) for column in cell.scores] for _, cell in cells]
        sums = zip(cells, scores, strict=True)
        return of_trainings([(weight, each, cell.draw) for (weight, cell), each in sums])

    def printed(terms: Sequence[tuple[float, str]]) -> Estimate:
        cells = [(weight, config.cells[name]) for weight, name in terms]
        values = [weight * float(cell.printed) for weight, cell in cells]
        return of_printed(values, [w * float(cell.printed_interval) for w, cell in cells])

    in_print = {name for name, cell in config.cells.items() if cell.printed}
    with_interval = {name for name in in_print if config.cells[name].printed_interval}
    in_run = {name for name, cell in config.cells.items() if cell.scores}
    judged = []
    for claim in config.claims:
        by_run, why = by_intervals(_asked(claim, config), in_print | in_run, in_run, measured), ""
        numbers = [_number(number) for number in claim.numbers if number.file]
        if numbers:
            by_run = Verdict(joined(f.word for f in numbers), tuple(numbers))
        if by_run.word == "not asked":
            why = _why(claim, config)
        by_words = by_bars = Verdict("not asked")
        if not claim.ours:
            by_words = by_print(claim, config.cells)
            by_bars = by_intervals(claim, in_print, with_interval, printed)
        judged.append(Judged(claim, by_words, by_bars, by_run, why))
    return judged


def _asked(claim: JudgedClaim, config: ClaimsConfig) -> JudgedClaim:
    """Without what this run cannot be asked of."""
    if len(config.seeds) < claim.trainings:
        return claim.model_copy(update={"conditions": ()})
    kept = tuple(c for c in claim.conditions if config.comparable or not c.absolute)
    return claim.model_copy(update={"conditions": kept})


def _why(claim: JudgedClaim, config: ClaimsConfig) -> str:
    """Why this run says nothing of a claim, and what does."""
    if claim.products and not claim.conditions:
        return "Arithmetic on numbers of the text; no run bears on it."
    if len(config.seeds) < claim.trainings:
        return f"Needs {claim.trainings} trainings: --config seeds={claim.trainings}."
    if claim.conditions and all(c.absolute for c in claim.conditions) and not config.comparable:
        return "A number on ImageNet, which a run on other data cannot have."
    return claim.unasked


def _number(number: ClaimNumber) -> Finding:
    """What a figure says, by the interval that it writes."""
    problem = f"{number.file} has no number {number.number}"
    with reading(problem, "correct the name in config/claims.yaml, or delete the file"):
        table = pd.read_csv(number.file).set_index("name")
        value, low, high = table.loc[number.number, ["value", "low", "high"]].astype(float)
    if number.sign == "below zero":
        word: Word = "holds" if high < 0 else "fails" if low > 0 else "open"
    else:
        word = "holds" if low > 0 else "fails" if high < 0 else "open"
    return Finding(number.number, value, (high - low) / 2, word)


def breaks(verdict: Verdict) -> str:
    """What keeps a claim from holding, worst first."""
    worst = [f for word in ("fails", "open") for f in verdict.findings if f.word == word]
    return "; ".join(f"{f.name} {shown(f)} {f.word}".strip() for f in worst)


def shown(finding: Finding) -> str:
    """A value with half the width of its interval."""
    value = f"{finding.value:+.2f}" if finding.name else f"{finding.value:.2f}"
    if finding.half_width is not None:
        value += f" ± {finding.half_width:.2f}"
    return f"{value} (not against all)" if finding.partial else value
