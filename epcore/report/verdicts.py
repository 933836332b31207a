"""Whether claims hold: by printed numbers as they stand, or by estimates with intervals.

A printed number lies within the bounds of a contrast or does not. An estimate *holds* if its 95 %
interval lies within the bounds, *fails* if it lies outside, and is *open* otherwise; p-values of
all cases of a claim are adjusted by Holm's method first. A claim holds if all its contrasts do,
and fails if one does.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from epcore.report.claim_config import Case, ClaimCell, JudgedClaim, JudgedContrast, Product
from epcore.report.statistics import LEVEL, Estimate, holm

Word = Literal["holds", "fails", "open", "not asked"]
PLURAL: dict[Word, str] = {"holds": "hold", "fails": "fail", "open": "open"}
Cells = Mapping[str, ClaimCell]
# The estimate of a weighted sum of cells.
Measure = Callable[[Sequence[tuple[float, str]]], Estimate]


@dataclass(frozen=True)
class CaseVerdict:
    """The verdict on a case: its value, half the width of its interval if it has one, and the word.

    partial: some rivals could not be measured, so that the case may fail but not hold.
    """

    name: str
    value: float
    half_width: float | None
    word: Word
    partial: bool = False

    @property
    def number(self) -> str:
        """The value with half the width of its interval."""
        number = f"{self.value:+.2f}" if self.name else f"{self.value:.2f}"
        if self.half_width is not None:
            number += f" ± {self.half_width:.2f}"
        return f"{number} (not against all)" if self.partial else number


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim and on its cases, and the names of those that lack a number."""

    word: Word
    cases: tuple[CaseVerdict, ...] = ()
    missing: tuple[str, ...] = ()

    def count(self, word: Word) -> int:
        return sum(case.word == word for case in self.cases)

    @property
    def summary(self) -> str:
        """How many cases hold, fail and are open, of how many: "3 hold, 1 open of 5"."""
        counts = [f"{n} {plural}" for word, plural in PLURAL.items() if (n := self.count(word))]
        total = len(self.cases) + len(self.missing)
        return f"{', '.join(counts)} of {total}" if counts else ""


# -- printed numbers -------------------------------------------------------------------------------


def judge_printed(claim: JudgedClaim, cells: Cells) -> Verdict:
    """Judges a claim by printed numbers as they stand, leaving out cases that nobody prints."""
    words: list[Word] = []
    verdicts: list[CaseVerdict] = []
    for contrast in claim.contrasts:
        values = _printed_values(contrast, cells)
        if contrast.of == "mean" and values:
            values = {"mean": sum(values.values(), Fraction(0)) / len(values)}
        judged = [_judge_value(contrast, name, value) for name, value in values.items()]
        words.append(_combine(contrast, [case.word for case in judged]))
        verdicts += _decisive(contrast, judged)
    for product in claim.products:
        words.append("holds" if rounded(product) == _decimal(product.stated) else "fails")
        verdicts.append(CaseVerdict("", float(exact(product)), None, words[-1]))
    return Verdict(conjunction(word for word in words if word != "not asked"), _worst(verdicts))


def _judge_value(contrast: JudgedContrast, name: str, value: Fraction) -> CaseVerdict:
    bounds = (contrast.low, contrast.at_most)
    low, high = (None if bound is None else _decimal(bound) for bound in bounds)
    enough = low is None or value > low or (value == low and contrast.above is None)
    inside = enough and (high is None or value <= high)
    return CaseVerdict(name, float(value), None, "holds" if inside else "fails")


def _printed_values(contrast: JudgedContrast, cells: Cells) -> dict[str, Fraction]:
    """The exact value of each case that is printed."""
    values: dict[str, Fraction] = {}
    for case in contrast.cases:
        printed = {cell: Fraction(text) for cell in case.cells if (text := cells[cell].printed)}
        if not _measurable(case, printed):
            continue
        value = sum((printed[cell] for cell in case.plus), Fraction(0))
        value -= sum((printed[cell] for cell in case.minus), Fraction(0))
        rivals = [printed[cell] for cell in case.rivals if cell in printed]
        values[case.name] = value - max(rivals, default=Fraction(0))
    return values


def _decimal(number: float) -> Fraction:
    """The decimal number that is meant: 4.85, not the nearest binary number."""
    return Fraction(repr(number))


def exact(product: Product) -> Fraction:
    """The exact value of a product."""
    factors = math.prod(map(_decimal, product.factors), start=Fraction(1))
    return factors / math.prod(map(_decimal, product.divisors), start=Fraction(1))


def rounded(product: Product) -> Fraction:
    """The value of a product, rounded to the decimals that are stated, halves up."""
    unit = Fraction(10) ** product.decimals
    return Fraction(math.floor(exact(product) * unit + Fraction(1, 2))) / unit


# -- estimates with intervals ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Test:
    """A case with its estimate and two p-values.

    inside: against the hypothesis that the true value is outside of the bounds. outside: against
    the hypothesis that it is inside.
    """

    name: str
    estimate: Estimate
    inside: float
    outside: float
    partial: bool


def judge_estimates(
    claim: JudgedClaim, existing: Collection[str], measurable: Collection[str], measure: Measure
) -> Verdict:
    """Judges a claim by estimates with intervals.

    Args:
        claim: the claim.
        existing: cells that anybody has a number of; a rival that is not among them is ignored.
        measurable: the cells that `measure` takes.
        measure: the estimate of a weighted sum of measurable cells.
    """
    tests = [_tests(contrast, existing, measurable, measure) for contrast in claim.contrasts]
    all_tests = [test for of_contrast in tests for test in of_contrast]
    inside = iter(holm([test.inside for test in all_tests]))
    outside = iter(holm([test.outside for test in all_tests]))
    words: list[Word] = []
    verdicts: list[CaseVerdict] = []
    missing: list[str] = []
    for contrast, of_contrast in zip(claim.contrasts, tests, strict=True):
        judged = []
        for test in of_contrast:
            word = _word(next(inside), next(outside), test.partial)
            value, half_width = test.estimate.value, test.estimate.half_width
            judged.append(CaseVerdict(test.name, value, half_width, word, test.partial))
        names = {case.name for case in judged}
        absent = [case.name for case in contrast.cases if not names & {case.name, "mean"}]
        words.append(_combine(contrast, [case.word for case in judged], len(absent)))
        verdicts += _decisive(contrast, judged)
        missing += absent
    return Verdict(conjunction(words), _worst(verdicts), tuple(missing))


def _tests(
    contrast: JudgedContrast,
    existing: Collection[str],
    measurable: Collection[str],
    measure: Measure,
) -> list[_Test]:
    """A test for each case that can be measured, or one for the mean of all cases."""
    cases = [case for case in contrast.cases if _measurable(case, measurable)]
    if contrast.of == "mean":
        complete = len(cases) == len(contrast.cases)
        return [_test(contrast, "mean", cases, existing, measurable, measure)] if complete else []
    return [_test(contrast, case.name, [case], existing, measurable, measure) for case in cases]


def _measurable(case: Case, cells: Collection[str]) -> bool:
    complete = all(cell in cells for cell in (*case.plus, *case.minus))
    return complete and (not case.rivals or any(cell in cells for cell in case.rivals))


def _test(
    contrast: JudgedContrast,
    name: str,
    cases: list[Case],
    existing: Collection[str],
    measurable: Collection[str],
    measure: Measure,
) -> _Test:
    """The test of the mean of cases.

    The margin over the best rival exceeds a bound if the margin over every rival does (largest
    p-value); it falls short if the margin over any rival does (Bonferroni).
    """
    share = 1 / len(cases)
    terms = [(share, cell) for case in cases for cell in case.plus]
    terms += [(-share, cell) for case in cases for cell in case.minus]
    rivals = [rival for case in cases for rival in case.rivals if rival in existing]
    measured = [rival for rival in rivals if rival in measurable]
    partial = len(measured) < len(rivals)
    estimates = [measure([*terms, (-1.0, rival)]) for rival in measured] or [measure(terms)]
    inside, outside = [0.0], [1.0]
    if (low := contrast.low) is not None:
        strictly = contrast.above is not None
        inside.append(max(estimate.above(low, strictly) for estimate in estimates))
        outside.append(len(estimates) * min(estimate.below(low) for estimate in estimates))
    if (high := contrast.at_most) is not None:
        inside.append(len(estimates) * min(estimate.below(high, False) for estimate in estimates))
        # The margin over a rival that was not measured may be smaller.
        outside.append(1.0 if partial else max(estimate.above(high) for estimate in estimates))
    lowest = min(estimates, key=lambda estimate: estimate.value)
    return _Test(name, lowest, max(inside), min(outside), partial)


def _word(inside: float, outside: float, partial: bool) -> Word:
    """The word for two p-values; a value outside is on one of two sides, each tested at `LEVEL`."""
    if outside <= LEVEL:
        return "fails"
    return "holds" if inside <= LEVEL and not partial else "open"


# -- words -----------------------------------------------------------------------------------------


def conjunction(words: Iterable[Word]) -> Word:
    """The word for a claim with parts: one part that fails is enough, all must hold."""
    distinct = set(words)
    if not distinct or distinct == {"not asked"}:
        return "not asked"
    if "fails" in distinct:
        return "fails"
    return "holds" if distinct == {"holds"} else "open"


def _combine(contrast: JudgedContrast, words: list[Word], missing: int = 0) -> Word:
    """The word for a contrast with these cases, and others that are missing."""
    if not words:
        return "not asked"
    if contrast.of == "any":
        if "holds" in words:
            return "holds"
        return "fails" if set(words) == {"fails"} and not missing else "open"
    if "fails" in words:
        return "fails"
    return "holds" if set(words) == {"holds"} and not missing else "open"


def _decisive(contrast: JudgedContrast, cases: list[CaseVerdict]) -> list[CaseVerdict]:
    """The cases to show: where any is enough, those that hold or else the largest; else all."""
    if contrast.of != "any" or not cases:
        return cases
    holding = [case for case in cases if case.word == "holds"]
    return holding or [max(cases, key=lambda case: case.value)]


def _worst(cases: list[CaseVerdict]) -> tuple[CaseVerdict, ...]:
    """Each case once, with the worst word that contrasts give it."""
    order: list[Word] = ["fails", "open", "holds"]
    worst: dict[str, CaseVerdict] = {}
    for case in cases:
        earlier = worst.get(case.name)
        if earlier is None or order.index(case.word) < order.index(earlier.word):
            worst[case.name] = case
    return tuple(worst.values())
