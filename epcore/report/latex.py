"""Typesets a table: the paper's layout, this run beside the paper's own numbers."""

import itertools
from pathlib import Path

from epcore.files import write_text
from epcore.plan.stages import LatexBlock, LatexColumn, LatexStage
from epcore.report.text_table import COLUMNS, Cell, read_cells

# The file can be compiled by itself or \input into a paper: \documentclass becomes an error command
# once a document has begun, which tells the two apart.
HEAD = r"""% Compile this file, or \input it into a paper that loads booktabs and xcolor.
\makeatletter
\ifx\documentclass\@twoclasseserror
  \let\epcoreend\relax
\else
  \documentclass[10pt]{article}
  \usepackage[a4paper,margin=15mm]{geometry}
  \usepackage{booktabs,xcolor}
  \pagestyle{empty}
  \gdef\epcoreend{\end{document}}
  \begin{document}
\fi
\makeatother
"""


def typeset(stage: LatexStage, cells: dict[tuple[str, str, str], Cell]) -> str:
    """The LaTeX of an aggregated table."""
    columns, numbers = stage.columns, _number_sources(stage)
    lines = [
        r"\begin{table}[!ht]",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        r"\providecommand{\ci}[1]{{\scriptsize$\,\pm$#1}}",
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{stage.caption}}}",
        rf"\label{{{stage.label}}}",
        rf"\begin{{tabular}}{{@{{}}lr*{{{len(columns)}}}{{rr}}@{{}}}}",
        r"\toprule",
        *_head(columns),
    ]
    for block in stage.blocks:
        lines += _block(block, columns, cells, numbers)
    lines += [r"\bottomrule", r"\end{tabular}", "", _sources(numbers), r"\end{table}"]
    return "\n".join(lines)


def _number_sources(stage: LatexStage) -> dict[str, int]:
    """Source -> its number in the list below the table, in order of appearance."""
    named = [row.source for block in stage.blocks for row in block.rows if row.source]
    return {source: number for number, source in enumerate(dict.fromkeys(named), start=1)}


def _sources(numbers: dict[str, int]) -> str:
    listed = "; ".join(rf"\textsuperscript{{{n}}}{source}" for source, n in numbers.items())
    return rf"\medskip\parbox{{0.98\linewidth}}{{\scriptsize Printed rows from: {listed}.}}"


def _head(columns: tuple[LatexColumn, ...]) -> list[str]:
    """Data set, shot, then this run and paper."""
    groups = [(name, 2 * len(list(c))) for name, c in itertools.groupby(columns, lambda c: c.group)]
    tops = [rf"\multicolumn{{{width}}}{{c}}{{\textbf{{{name}}}}}" for name, width in groups]
    starts = itertools.accumulate([3] + [width for _, width in groups[:-1]])
    rules = [
        rf"\cmidrule(lr){{{start}-{start + width - 1}}}"
        for start, (_, width) in zip(starts, groups, strict=True)
    ]
    shots = [rf"\multicolumn{{2}}{{c}}{{{column.heading}}}" for column in columns]
    pairs = [r"\emph{this run} & \emph{paper}"] * len(columns)
    return [
        "& & " + " & ".join(tops) + r" \\",
        "".join(rules),
        "& Params & " + " & ".join(shots) + r" \\",
        "& & " + " & ".join(pairs) + r" \\",
    ]


def _block(
    block: LatexBlock,
    columns: tuple[LatexColumn, ...],
    cells: dict[tuple[str, str, str], Cell],
    numbers: dict[str, int],
) -> list[str]:
    width = 2 + 2 * len(columns)
    lines = [r"\midrule", rf"\multicolumn{{{width}}}{{c}}{{{block.heading}}} \\", r"\midrule"]
    ours_before = False
    for row in block.rows:
        found = [cells[block.block, row.row, column.name] for column in columns]
        ours = any(cell["accuracy"] for cell in found)
        if ours and not ours_before:
            lines.append(rf"\cmidrule(lr){{1-{width}}}")
        ours_before = ours
        label = row.label
        if row.source:
            label += rf"\textsuperscript{{{numbers[row.source]}}}"
        entries = [label, _parameters(found)]
        for cell in found:
            entries += [_number(cell["accuracy"], cell["interval"], round_to=2)]
            entries += [_printed(cell)]
        lines.append(" & ".join(entries) + r" \\")
    return lines


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
