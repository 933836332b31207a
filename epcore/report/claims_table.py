"""The claims in LaTeX: a table that goes over as many pages as it needs."""

import itertools

from epcore.report.claim_config import ClaimsConfig
from epcore.report.judged import Judged
from epcore.report.latex import head
from epcore.report.markup import literal, to_tex
from epcore.report.verdicts import Verdict, Word

PACKAGES = "array,booktabs,longtable,xcolor"
COLORS = {"holds": "green!45!black", "fails": "red!75!black", "open": "orange!75!black"}
PLURAL: dict[Word, str] = {"holds": "hold", "fails": "fail", "open": "open"}
COLUMNS = 5
TITLES = (
    r" & & \multicolumn{2}{l}{\textbf{as printed}} & \\",
    r"\cmidrule(lr){3-4}",
    r" & \textbf{claim} & numbers & intervals & \textbf{this run} \\",
)


def typeset(config: ClaimsConfig, judged: list[Judged]) -> str:
    """The whole file."""
    lines = [
        head(PACKAGES) + r"{\footnotesize\setlength{\tabcolsep}{4pt}",
        r"\begin{longtable}{@{}l>{\raggedright\arraybackslash}p{.52\linewidth}ll"
        r">{\raggedright\arraybackslash}p{.17\linewidth}@{}}",
        rf"\caption{{{to_tex(config.title)}. {to_tex(note_of(config))}}}\label{{tab:claims}}\\",
        *(r"\toprule", *TITLES, r"\endfirsthead"),
        *(r"\toprule", *TITLES, r"\midrule", r"\endhead"),
        r"\bottomrule\endfoot",
    ]
    for ours, claims in itertools.groupby(judged, key=lambda each: each.claim.ours):
        heading = "Claims of this project" if ours else "Claims of the paper"
        lines += [r"\midrule", rf"\multicolumn{{{COLUMNS}}}{{c}}{{{heading}}} \\", r"\midrule"]
        lines += [_line(each) for each in claims]
    return "\n".join([*lines, r"\end{longtable}}", r"\epcoreend", ""])


def note_of(config: ClaimsConfig) -> str:
    """What verdicts mean."""
    if len(config.seeds) == 1:
        over = "over test episodes, of one training each: they say nothing of another training"
    else:
        over = (
            f"over {len(config.seeds)} trainings of each network (a figure's number is of the "
            "first, with the figure's interval)"
        )
    return (
        f"*Numbers*: as they stand. *Intervals*: 95\N{THIN SPACE}% intervals, as printed (those of "
        f"differences as of independent episodes) and, of this run, {over}; p-values of a claim's "
        "cells are adjusted by Holm's method. *Open*: an interval holds the bound, or "
        "cells are missing; in brackets, cells that hold, fail and are open, of all. "
        f"{config.notes.rstrip('.')}."
    )


def counts_of(verdict: Verdict) -> str:
    """How many cells hold, fail, are open, of how many."""
    counts = [f"{count} {said}" for word, said in PLURAL.items() if (count := verdict.count(word))]
    return f"{', '.join(counts)} of {len(verdict.cases) + len(verdict.missing)}" if counts else ""


def _line(each: Judged) -> str:
    run = _colored(each.this_run.word)
    if counts := counts_of(each.this_run):
        run += rf" {{\scriptsize({counts})}}"
    claim = f"{plain(each.claim.claim)} {{\\scriptsize {plain(each.claim.where)}}}"
    words = (each.claim.id, claim, _colored(each.printed.word))
    return " & ".join((*words, _colored(each.printed_intervals.word), run)) + r" \\"


def plain(text: str) -> str:
    """A text without markup, in LaTeX; two hyphens are no dash: --Net."""
    return to_tex(literal(text)).replace("--", "-{}-")


def _colored(word: Word) -> str:
    return rf"\textcolor{{{COLORS.get(word, 'gray')}}}{{{word if word in COLORS else '--'}}}"
