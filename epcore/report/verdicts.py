"""Whether claims hold, by estimates with intervals.

An estimate *holds* if its 95 % interval lies within the bounds of a contrast, *fails* if it lies
outside, and is *open* otherwise; p-values of all cases of a claim are adjusted by Holm's method
first. A printed number as it stands is an estimate without error, which is never open. A claim
holds if all its contrasts do, and fails if one does.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from epcore.report.claim_config import Case, JudgedClaim, JudgedContrast
from epcore.report.statistics import LEVEL, Estimate, holm

Word = Literal["holds", "fails", "open", "not asked"]
PLURAL: dict[Word, str] = {"holds": "hold", "fails": "fail", "open": "open"}


@dataclass(frozen=True)
class Evidence:
    """The cells that a claim is judged by.

    existing: cells that anybody has a number of; a rival that is not among them is ignored.
    measurable: the cells that `measure` takes. measure: the estimate of a weighted sum of them.
    """

    existing: Collection[str]
    measurable: Collection[str]
    measure: Callable[[Sequence[tuple[float, str]]], Estimate]

    def covers(self, case: Case) -> bool:
        """Whether a case can be measured, against one rival at least."""
        complete = all(cell in self.measurable for cell in (*case.plus, *case.minus))
        return complete and (not case.rivals or any(r in self.measurable for r in case.rivals))


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

    def verdict(self, inside: float, outside: float) -> CaseVerdict:
        """The verdict by p-values that are adjusted for their number."""
        word = _word(inside, outside, self.partial)
        half_width = self.estimate.half_width or None
        return CaseVerdict(self.name, self.estimate.value, half_width, word, self.partial)


def judge_estimates(claim: JudgedClaim, evidence: Evidence) -> Verdict:
    """Judges a claim by estimates with intervals."""
    tests = [(c, test) for c in claim.contrasts for test in _tests(c, evidence)]
    inside = holm([test.inside for _, test in tests])
    outside = holm([test.outside for _, test in tests])
    cases = [
        (contrast, test.verdict(*p_values))
        for (contrast, test), *p_values in zip(tests, inside, outside, strict=True)
    ]
    words: list[Word] = []
    verdicts: list[CaseVerdict] = []
    missing: list[str] = []
    for contrast in claim.contrasts:
        judged = [case for owner, case in cases if owner is contrast]
        names = {case.name for case in judged}
        absent = [case.name for case in contrast.cases if not names & {case.name, "mean"}]
        words.append(_combine(contrast, [case.word for case in judged], len(absent)))
        verdicts += _decisive(contrast, judged)
        missing += absent
    return Verdict(conjunction(words), _worst(verdicts), tuple(missing))


def judge_products(claim: JudgedClaim) -> Verdict:
    """Judges a claim by arithmetic: each product rounds, halves up, to what is stated."""
    cases = []
    for product in claim.products:
        value = math.prod(product.factors) / math.prod(product.divisors)
        rounds = round(value + 1e-9, product.decimals) == product.stated
        cases.append(CaseVerdict("", value, None, "holds" if rounds else "fails"))
    return Verdict(conjunction(case.word for case in cases), _worst(cases))


def covered(claim: JudgedClaim, evidence: Evidence) -> JudgedClaim:
    """The claim without the cases that cannot be measured."""
    contrasts = (
        contrast.model_copy(update={"cases": tuple(filter(evidence.covers, contrast.cases))})
        for contrast in claim.contrasts
    )
    return claim.model_copy(update={"contrasts": tuple(c for c in contrasts if c.cases)})


def _tests(contrast: JudgedContrast, evidence: Evidence) -> list[_Test]:
    """A test for each case that can be measured, or one for the mean of all cases."""
    cases = [case for case in contrast.cases if evidence.covers(case)]
    if contrast.of == "mean":
        complete = len(cases) == len(contrast.cases)
        return [_test(contrast, "mean", cases, evidence)] if complete else []
    return [_test(contrast, case.name, [case], evidence) for case in cases]


def _test(contrast: JudgedContrast, name: str, cases: list[Case], evidence: Evidence) -> _Test:
    """The test of the mean of cases.

    The margin over the best rival exceeds a bound if the margin over every rival does (largest
    p-value); it falls short if the margin over any rival does (Bonferroni).
    """
    share = 1 / len(cases)
    terms = [(share, cell) for case in cases for cell in case.plus]
    terms += [(-share, cell) for case in cases for cell in case.minus]
    rivals = [rival for case in cases for rival in case.rivals if rival in evidence.existing]
    measured = [rival for rival in rivals if rival in evidence.measurable]
    partial = len(measured) < len(rivals)
    margins = [[*terms, (-1.0, rival)] for rival in measured] or [terms]
    estimates = [evidence.measure(margin) for margin in margins]
    inside, outside = [0.0], [1.0]
    if (low := contrast.low) is not None:
        strictly = contrast.above is not None
        inside.append(max(estimate.above(low, strictly) for estimate in estimates))
        below = (estimate.below(low, not strictly) for estimate in estimates)
        outside.append(len(estimates) * min(below))
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
