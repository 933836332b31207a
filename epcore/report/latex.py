"""A table in LaTeX: the paper's layout, this run beside the paper's own numbers."""

import itertools
from collections.abc import Iterable

from epcore.report.layout import Block, Layout, Line, Number
from epcore.report.markup import to_tex

PACKAGES = "amssymb,booktabs,graphicx,xcolor"
# Rows that a page has room for.
MOST = 64


def head(packages: str) -> str:
    r"""The first lines of a file that can be compiled by itself or \input into a paper.

    \documentclass becomes an error command once a document has begun, which tells the two apart.
    """
    *names, last = packages.split(",")
    return rf"""% Compile this file, or \input it into a paper that loads
% {", ".join(names)} and {last}.
\makeatletter
\ifx\documentclass\@twoclasseserror
  \let\epcoreend\relax
\else
  \documentclass[10pt]{{article}}
  \usepackage[a4paper,margin=15mm]{{geometry}}
  \usepackage{{{packages}}}
  % Letters that pdflatex has no font for become question marks; lualatex knows more.
  \ifdefined\UTFviii@undefined@err\def\UTFviii@undefined@err#1{{?}}\fi
  \pagestyle{{empty}}
  \gdef\epcoreend{{\end{{document}}}}
  \begin{{document}}
\fi
\makeatother
"""


def typeset(layout: Layout) -> str:
    """The whole file of a table; one of many blocks goes on from page to page."""
    *before, last = _pages(layout.blocks)
    lines: list[str] = []
    for blocks in before:
        lines += [*_page(layout, blocks, first=not lines), r"\end{table}"]
    lines += _page(layout, last, first=not lines)
    if layout.sources:
        lines += ["", _sources(layout.sources)]
    return head(PACKAGES) + "\n".join([*lines, r"\end{table}", r"\epcoreend", ""])


def _pages(blocks: Iterable[Block]) -> list[list[Block]]:
    """As many blocks on each as it has room for, one at least."""
    pages: list[list[Block]] = [[]]
    for block in blocks:
        if pages[-1] and sum(len(each.lines) for each in (*pages[-1], block)) > MOST:
            pages.append([])
        pages[-1].append(block)
    return pages


def _page(layout: Layout, blocks: list[Block], first: bool) -> list[str]:
    """The lines of a page, up to the end of its rows."""
    caption = [rf"\caption{{{to_tex(layout.caption)}}}", rf"\label{{{layout.label}}}"]
    lines = [
        r"\begin{table}[!ht]",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        r"\providecommand{\ci}[1]{{\scriptsize$\,\pm$#1}}",
        r"\setlength{\belowcaptionskip}{6pt}",
        *(caption if first else [r"\addtocounter{table}{-1}", r"\caption{Continued.}"]),
        r"% A table that is wider than the page is made as small as the page is wide.",
        r"\providecommand{\resizebox}[3]{#3}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{_specification(layout)}}}",
        r"\toprule",
        *_head(layout),
    ]
    for block in blocks:
        lines += _block(block, layout.width)
    return [*lines, r"\bottomrule", r"\end{tabular}}"]


def _specification(layout: Layout) -> str:
    lead = "l" + "c" * len(layout.marks) + "r" * len(layout.facts)
    return f"@{{}}{lead}*{{{len(layout.headings)}}}{{{'r' * layout.per_cell}}}@{{}}"


def _sources(sources: tuple[str, ...]) -> str:
    numbered = enumerate(sources, start=1)
    listed = "; ".join(rf"\textsuperscript{{{n}}}{to_tex(source)}" for n, source in numbered)
    return rf"\medskip\parbox{{0.98\linewidth}}{{\scriptsize Printed rows from: {listed}.}}"


def _head(layout: Layout) -> list[str]:
    """Data set, shot, then what stands beside each other in a cell."""
    groups = layout.spans
    tops = [rf"\multicolumn{{{span}}}{{c}}{{\textbf{{{to_tex(name)}}}}}" for name, span in groups]
    starts = itertools.accumulate([layout.lead + 1] + [span for _, span in groups[:-1]])
    rules = [
        rf"\cmidrule(lr){{{start}-{start + span - 1}}}"
        for start, (_, span) in zip(starts, groups, strict=True)
    ]
    lead = map(to_tex, [layout.first, *layout.marks, *layout.facts])
    headings = [
        rf"\multicolumn{{{layout.per_cell}}}{{c}}{{{to_tex(heading)}}}"
        for heading in layout.headings
    ]
    lines = [
        " & ".join([""] * layout.lead + tops) + r" \\",
        "".join(rules),
        " & ".join([*lead, *headings]) + r" \\",
    ]
    if layout.beside is not None:
        pair = rf"\emph{{this run}} & \emph{{{layout.beside}}}"
        lines.append(" & ".join([""] * layout.lead + [pair] * len(layout.headings)) + r" \\")
    return lines


def _block(block: Block, width: int) -> list[str]:
    heading = rf"\multicolumn{{{width}}}{{c}}{{{to_tex(block.heading)}}} \\"
    lines = [r"\midrule", heading, r"\midrule"]
    for before, line in zip((None, *block.lines), block.lines, strict=False):
        if before and before.source and not line.source:
            lines.append(rf"\cmidrule(lr){{1-{width}}}")
        lines.append(" & ".join(_entries(line)) + r" \\")
    return lines


def _entries(line: Line) -> list[str]:
    label = r"\quad" * line.below + to_tex(line.label)
    if line.source:
        label += rf"\textsuperscript{{{line.source}}}"
    ticks = [r"$\checkmark$" if mark else "" for mark in line.marks]
    return [label, *ticks, *line.facts, *map(_number, line.numbers)]


def _number(number: Number | None) -> str:
    if number is None:
        return ""
    value = number.value or "--"
    text = f"${value}$" if value[0] in "+-" and number.value else value
    text += rf"\ci{{{number.interval}}}" if number.interval else ""
    text += r"$^\circ$" if number.within_noise else ""
    return rf"\textcolor{{gray}}{{{text}}}" if number.gray else text
