"""Typesets a table: the paper's layout, this run beside the paper's own numbers."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from epcore.files import write_text
from epcore.plan.stages import LatexBlock, LatexColumn, LatexStage
from epcore.report.text_table import COLUMNS, Cell, read_cells

# The file can be compiled by itself or \input into a paper: \documentclass becomes an error command
# once a document has begun, which tells the two apart.
HEAD = r"""% Compile this file, or \input it into a paper that loads
% amssymb, booktabs, graphicx and xcolor.
\makeatletter
\ifx\documentclass\@twoclasseserror
  \let\epcoreend\relax
\else
  \documentclass[10pt]{article}
  \usepackage[a4paper,margin=15mm]{geometry}
  \usepackage{amssymb,booktabs,graphicx,xcolor}
  \pagestyle{empty}
  \gdef\epcoreend{\end{document}}
  \begin{document}
\fi
\makeatother
"""


@dataclass(frozen=True)
class Layout:
    """Which columns a table has: its first, ticks, parameters, and one or two for each cell.

    Stacked, what would be the second column of a cell has rows of its own.
    """

    first: str
    marks: tuple[str, ...]
    parameters: bool
    beside: Literal["paper", "difference", None]
    stacked: bool
    columns: tuple[LatexColumn, ...]

    @property
    def lead(self) -> int:
        """Columns before the first cell."""
        return 1 + len(self.marks) + self.parameters

    @property
    def per_cell(self) -> int:
        return 1 if self.beside is None else 2

    @property
    def width(self) -> int:
        return self.lead + self.per_cell * len(self.columns)

    @property
    def specification(self) -> str:
        lead = "l" + "c" * len(self.marks) + "r" * self.parameters
        return f"@{{}}{lead}*{{{len(self.columns)}}}{{{'r' * self.per_cell}}}@{{}}"


def typeset(stage: LatexStage, cells: dict[tuple[str, str, str], Cell]) -> str:
    """The LaTeX of an aggregated table."""
    differences = any(cell["difference"] for cell in cells.values())
    beside: Literal["paper", "difference", None] = "difference" if differences else None
    if stage.stacked:
        beside = None
    elif stage.printed:
        beside = "paper"
    layout = Layout(
        first=stage.first,
        marks=stage.marks,
        parameters=any(cell["paper_parameters"] for cell in cells.values()),
        beside=beside,
        stacked=stage.stacked,
        columns=stage.columns,
    )
    numbers = _number_sources(stage)
    lines = [
        r"\begin{table}[!ht]",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        r"\providecommand{\ci}[1]{{\scriptsize$\,\pm$#1}}",
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{stage.caption}}}",
        rf"\label{{{stage.label}}}",
        r"% A table that is wider than the page is made as small as the page is wide.",
        r"\providecommand{\resizebox}[3]{#3}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{layout.specification}}}",
        r"\toprule",
        *_head(layout),
    ]
    for block in stage.blocks:
        lines += _block(block, layout, cells, numbers)
    lines += [r"\bottomrule", r"\end{tabular}}"]
    if numbers:
        lines += ["", _sources(numbers)]
    return "\n".join([*lines, r"\end{table}"])


def _number_sources(stage: LatexStage) -> dict[str, int]:
    """Source -> its number in the list below the table, in order of appearance."""
    named = [row.source for block in stage.blocks for row in block.rows if row.source]
    return {source: number for number, source in enumerate(dict.fromkeys(named), start=1)}


def _sources(numbers: dict[str, int]) -> str:
    listed = "; ".join(rf"\textsuperscript{{{n}}}{source}" for source, n in numbers.items())
    return rf"\medskip\parbox{{0.98\linewidth}}{{\scriptsize Printed rows from: {listed}.}}"


def _head(layout: Layout) -> list[str]:
    """Data set, shot, then what stands beside each other in a cell."""
    width = layout.per_cell
    grouped = itertools.groupby(layout.columns, lambda column: column.group)
    groups = [(name, width * len(list(columns))) for name, columns in grouped]
    tops = [rf"\multicolumn{{{span}}}{{c}}{{\textbf{{{name}}}}}" for name, span in groups]
    starts = itertools.accumulate([layout.lead + 1] + [span for _, span in groups[:-1]])
    rules = [
        rf"\cmidrule(lr){{{start}-{start + span - 1}}}"
        for start, (_, span) in zip(starts, groups, strict=True)
    ]
    lead = [layout.first, *layout.marks] + ["Params"] * layout.parameters
    headings = [rf"\multicolumn{{{width}}}{{c}}{{{column.heading}}}" for column in layout.columns]
    lines = [
        " & ".join([""] * layout.lead + tops) + r" \\",
        "".join(rules),
        " & ".join(lead + headings) + r" \\",
    ]
    if layout.beside is not None:
        pair = rf"\emph{{this run}} & \emph{{{layout.beside}}}"
        lines.append(" & ".join([""] * layout.lead + [pair] * len(layout.columns)) + r" \\")
    return lines


def _block(
    block: LatexBlock,
    layout: Layout,
    cells: dict[tuple[str, str, str], Cell],
    numbers: dict[str, int],
) -> list[str]:
    heading = rf"\multicolumn{{{layout.width}}}{{c}}{{{block.heading}}} \\"
    lines = [r"\midrule", heading, r"\midrule"]
    theirs_before = False
    for row in block.rows:
        found = [cells[block.block, row.row, column.name] for column in layout.columns]
        if theirs_before and not row.source:
            lines.append(rf"\cmidrule(lr){{1-{layout.width}}}")
        theirs_before = bool(row.source)
        label = row.label
        if row.source:
            label += rf"\textsuperscript{{{numbers[row.source]}}}"
        entries = [label, *(r"$\checkmark$" if m in row.marks else "" for m in layout.marks)]
        if layout.parameters:
            entries.append(_parameters(found))
        for cell in found:
            printed = layout.stacked and row.source
            ours = _number(cell["accuracy"], cell["interval"], round_to=2)
            entries.append(_printed(cell) if printed else ours)
            if layout.beside == "paper":
                entries.append(_printed(cell))
            elif layout.beside == "difference":
                entries.append(_difference(cell))
        lines.append(" & ".join(entries) + r" \\")
        if layout.stacked and any(cell["difference"] for cell in found):
            lead = [r"\quad\emph{difference}"] + [""] * (layout.lead - 1)
            lines.append(" & ".join([*lead, *map(_difference, found)]) + r" \\")
    return lines


def _difference(cell: Cell) -> str:
    """With its sign; empty for the row that others are compared with."""
    if not cell["difference"]:
        return ""
    return rf"${float(cell['difference']):+.2f}$\ci{{{float(cell['difference_interval']):.2f}}}"


def _parameters(row: list[Cell]) -> str:
    """Our count in thousands, from any cell of the row that is ours, beside the paper's."""
    paper = row[0]["paper_parameters"]
    ours = [cell["parameters"] for cell in row if cell["parameters"]]
    return f"{round(int(ours[0]) / 1000)}K ({paper})" if ours else paper


def _printed(cell: Cell) -> str:
    number = _number(cell["paper_accuracy"], cell["paper_interval"])
    return rf"\textcolor{{gray}}{{{number}}}" if cell["note"] == "224 px" else number


def _number(accuracy: str, interval: str, round_to: int | None = None) -> str:
    if not accuracy:
        return "--"
    if round_to is not None:
        accuracy, interval = f"{float(accuracy):.{round_to}f}", f"{float(interval):.{round_to}f}"
    return rf"{accuracy}\ci{{{interval}}}" if interval else accuracy


def run(stage: LatexStage, table: Path, out: Path) -> None:
    """The stage `latex`."""
    remedy = "delete it and run the same command again"
    text = typeset(stage, read_cells(table, COLUMNS, remedy))
    write_text(out, HEAD + text + "\n\\epcoreend\n")
