"""Whether claims hold: by printed numbers as they stand, by printed intervals, and by this run.

A case of a claim is a sum of cells that must lie in a range. By printed numbers it does or does
not. By intervals it *holds* if the 95 % interval lies in the range, *fails* if it lies outside, and
is *open* otherwise; p-values of all cases of a claim are adjusted by Holm's method first. A claim
holds if all its conditions do, and fails if one does.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from epcore.report.claim_config import ClaimCase, ClaimCell, ClaimCondition, JudgedClaim, Product
from epcore.report.evidence import LEVEL, Estimate, holm

Word = Literal["holds", "fails", "open", "not asked"]
Cells = Mapping[str, ClaimCell]
# The estimate of a weighted sum of cells.
Measure = Callable[[Sequence[tuple[float, str]]], Estimate]


@dataclass(frozen=True)
class Finding:
    """What is found of a case: its value, half the width of its interval, if any, and the word.

    partial: rivals of it could not be measured, so that it may fail but not hold.
    """

    name: str
    value: float
    half_width: float | None
    word: Word
    partial: bool = False


@dataclass(frozen=True)
class Verdict:
    """What is said of a claim: a word, findings of the cases that can be asked, and the others."""

    word: Word
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()

    def count(self, word: Word) -> int:
        return sum(finding.word == word for finding in self.findings)


# -- printed numbers -------------------------------------------------------------------------------


def by_print(claim: JudgedClaim, cells: Cells) -> Verdict:
    """Printed numbers as they stand; a part that nobody prints leaves the others to say."""
    words: list[Word] = []
    findings: list[Finding] = []
    for condition in claim.conditions:
        values = _printed_values(condition, cells)
        if condition.how == "mean" and values:
            values = {"mean": sum(values.values(), Fraction(0)) / len(values)}
        found = [_found(condition, name, value) for name, value in values.items()]
        words.append(_of_cases(condition, [each.word for each in found]))
        findings += _told(condition, found)
    for product in claim.products:
        words.append("holds" if rounded(product) == _decimal(product.stated) else "fails")
        findings.append(Finding("", float(exact(product)), None, words[-1]))
    word = joined(word for word in words if word != "not asked")
    return Verdict(word, _distinct(findings))


def _found(condition: ClaimCondition, name: str, value: Fraction) -> Finding:
    low, high = (None if b is None else _decimal(b) for b in (condition.low, condition.high))
    enough = low is None or value > low or (value == low and not condition.above)
    inside = enough and (high is None or value <= high)
    return Finding(name, float(value), None, "holds" if inside else "fails")


def _printed_values(condition: ClaimCondition, cells: Cells) -> dict[str, Fraction]:
    """The exact value of each case that is printed."""
    found: dict[str, Fraction] = {}
    for case in condition.cases:
        printed = {cell: Fraction(text) for cell in case.cells if (text := cells[cell].printed)}
        if not _measurable(case, printed):
            continue
        value = sum((printed[cell] for cell in case.plus), Fraction(0))
        value -= sum((printed[cell] for cell in case.minus), Fraction(0))
        rivals = [printed[cell] for cell in case.rivals if cell in printed]
        found[case.name] = value - max(rivals, default=Fraction(0))
    return found


def _decimal(number: float) -> Fraction:
    """The decimal number that is meant: 4.85, not the binary one beside it."""
    return Fraction(repr(number))


def exact(product: Product) -> Fraction:
    """Its value."""
    factors = math.prod(map(_decimal, product.factors), start=Fraction(1))
    return factors / math.prod(map(_decimal, product.divisors), start=Fraction(1))


def rounded(product: Product) -> Fraction:
    """Its value, rounded to the decimals that are stated, halves up."""
    unit = Fraction(10) ** product.decimals
    return Fraction(math.floor(exact(product) * unit + Fraction(1, 2))) / unit


# -- intervals -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Test:
    """A case, its estimate, and the p-values against its being outside and inside of the range."""

    name: str
    estimate: Estimate
    inside: float
    outside: float
    partial: bool


def by_intervals(
    claim: JudgedClaim, asked: Collection[str], known: Collection[str], measure: Measure
) -> Verdict:
    """By estimates with intervals.

    Args:
        claim: the claim.
        asked: cells that there are; a rival that is not among them is none.
        known: those that can be measured.
        measure: the estimate of a weighted sum of known cells.
    """
    tests = [_tests(condition, asked, known, measure) for condition in claim.conditions]
    flat = [test for of_condition in tests for test in of_condition]
    inside = iter(holm([test.inside for test in flat]))
    outside = iter(holm([test.outside for test in flat]))
    words: list[Word] = []
    findings: list[Finding] = []
    missing: list[str] = []
    for condition, of_condition in zip(claim.conditions, tests, strict=True):
        found = [
            Finding(test.name, test.estimate.value, test.estimate.half_width, word, test.partial)
            for test in of_condition
            for word in [_of_p(next(inside), next(outside), test.partial)]
        ]
        there = {finding.name for finding in found}
        lacks = [case.name for case in condition.cases if not there & {case.name, "mean"}]
        words.append(_of_cases(condition, [finding.word for finding in found], len(lacks)))
        findings += _told(condition, found)
        missing += lacks
    return Verdict(joined(words), _distinct(findings), tuple(missing))


def _tests(
    condition: ClaimCondition, asked: Collection[str], known: Collection[str], measure: Measure
) -> list[_Test]:
    """A test for each case that can be measured, or one for the mean of all."""
    can = [case for case in condition.cases if _measurable(case, known)]
    if condition.how == "mean":
        whole = len(can) == len(condition.cases)
        return [_test(condition, "mean", can, asked, known, measure)] if whole else []
    return [_test(condition, case.name, [case], asked, known, measure) for case in can]


def _measurable(case: ClaimCase, known: Collection[str]) -> bool:
    all_known = all(cell in known for cell in (*case.plus, *case.minus))
    return all_known and (not case.rivals or any(cell in known for cell in case.rivals))


def _test(
    condition: ClaimCondition,
    name: str,
    cases: list[ClaimCase],
    asked: Collection[str],
    known: Collection[str],
    measure: Measure,
) -> _Test:
    """The test of the mean of cases.

    Less the largest of several rivals is above a bound if it is less each of them, and below if it
    is less any of them; the latter are as many tests.
    """
    share = 1 / len(cases)
    terms = [(share, cell) for case in cases for cell in case.plus]
    terms += [(-share, cell) for case in cases for cell in case.minus]
    rivals = [rival for case in cases for rival in case.rivals if rival in asked]
    there = [rival for rival in rivals if rival in known]
    estimates = [measure([*terms, (-1.0, rival)]) for rival in there] or [measure(terms)]
    inside, outside = [0.0], [1.0]
    if (low := condition.low) is not None:
        inside.append(max(e.above(low, condition.above) for e in estimates))
        outside.append(len(estimates) * min(e.below(low) for e in estimates))
    if (high := condition.high) is not None:
        inside.append(len(estimates) * min(e.below(high, False) for e in estimates))
        # Less the rivals that are unknown it may be lower.
        outside.append(max(e.above(high) for e in estimates) if len(there) == len(rivals) else 1.0)
    lowest = min(estimates, key=lambda estimate: estimate.value)
    return _Test(name, lowest, max(inside), min(outside), len(there) < len(rivals))


def _of_p(inside: float, outside: float, partial: bool) -> Word:
    """Outside has two sides at most, which the level of each side allows for."""
    if outside <= LEVEL:
        return "fails"
    return "holds" if inside <= LEVEL and not partial else "open"


# -- both ------------------------------------------------------------------------------------------


def joined(words: Iterable[Word]) -> Word:
    """The word for a claim with parts: one that fails is enough, all must hold."""
    found = set(words)
    if not found or found == {"not asked"}:
        return "not asked"
    if "fails" in found:
        return "fails"
    return "holds" if found == {"holds"} else "open"


def _of_cases(condition: ClaimCondition, words: list[Word], missing: int = 0) -> Word:
    """The word for a condition, from those of its cases."""
    if not words:
        return "not asked"
    if condition.how == "some" and "holds" in words:
        return "holds"
    if condition.how == "some":
        return "fails" if set(words) == {"fails"} and not missing else "open"
    if "fails" in words:
        return "fails"
    return "holds" if set(words) == {"holds"} and not missing else "open"


def _told(condition: ClaimCondition, found: list[Finding]) -> list[Finding]:
    """Where some case is enough, those that are; else the one that comes nearest."""
    if condition.how != "some" or not found:
        return found
    enough = [finding for finding in found if finding.word == "holds"]
    return enough or [max(found, key=lambda finding: finding.value)]


def _distinct(findings: list[Finding]) -> tuple[Finding, ...]:
    """What two conditions find of a case once: the worse."""
    order: list[Word] = ["fails", "open", "holds"]
    kept: dict[str, Finding] = {}
    for finding in findings:
        other = kept.get(finding.name)
        if other is None or order.index(finding.word) < order.index(other.word):
            kept[finding.name] = finding
    return tuple(kept.values())
