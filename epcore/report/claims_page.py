"""The claims as a page for browsers: colored verdicts, and below each its cells and tables."""

import html
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from epcore.report.claim_config import ClaimsConfig
from epcore.report.claims_table import PLURAL, counts_of, note_of
from epcore.report.html_table import document
from epcore.report.judged import Judged, Measured, value_of
from epcore.report.markup import to_html
from epcore.report.verdicts import Verdict, Word

STYLE = """
table.claims td, table.claims th { white-space: normal; vertical-align: top; text-align: left; }
table.claims th[scope=row] { max-width: 34rem; }
.holds { color: #14602a; } .fails { color: #a01818; } .open { color: #8a5300; }
.not-asked { color: #6b6b6b; }
.word { font-weight: 600; }
summary { cursor: pointer; }
details ul { margin: .2rem 0 .5rem; padding-left: 1.2rem; font-size: 90%; }
"""


def page(
    config: ClaimsConfig, judged: list[Judged], measured: Mapping[str, Measured], folder: Path
) -> str:
    """The whole page; its links are relative to the folder of the tables."""
    cells = {name: _cell(name, config, measured.get(name), folder) for name in config.cells}
    body = [
        f"<style>{STYLE}</style>",
        f"<h1>{to_html(config.title)}</h1>",
        f"<p>{to_html(note_of(config))}</p>",
        _summary(judged),
        '<div class="scroll"><table class="claims">',
        "<thead><tr><td></td>",
        *(f'<th scope="col">{title}</th>' for title in TITLES),
        "</tr></thead>",
    ]
    for ours, heading in ((False, "Claims of the paper"), (True, "Claims of this project")):
        body.append(f'<tbody><tr><th colspan="5" scope="rowgroup">{heading}</th></tr>')
        for each in judged:
            if each.claim.ours == ours:
                body.append(_line(each, config, _cells(each, cells)))
        body.append("</tbody>")
    body.append("</table></div>")
    return document("Claims and verdicts", "\n".join(body))


TITLES = ("claim", "as printed", "by printed intervals", "this run")


def _summary(judged: list[Judged]) -> str:
    """How many of the paper's claims hold."""
    paper = [each for each in judged if not each.claim.ours]
    words: dict[Word, str] = {**PLURAL, "not asked": "not asked"}
    lines = []
    for title, verdicts in (
        ("As printed", [each.printed for each in paper]),
        ("By printed intervals", [each.printed_intervals for each in paper]),
        ("In this run", [each.this_run for each in paper]),
    ):
        counts = [f"{sum(v.word == w for v in verdicts)} {said}" for w, said in words.items()]
        lines.append(f"<li>{title}: {', '.join(counts)} of the paper's {len(verdicts)} claims</li>")
    return f"<ul>{''.join(lines)}</ul>"


def _line(each: Judged, config: ClaimsConfig, cells: str) -> str:
    """The row of a claim, with links to the tables and figures of this scale and its cells."""
    claim = each.claim
    verdicts = (each.printed, each.printed_intervals, each.this_run)
    words = "".join(f"<td>{_verdict(verdict)}</td>" for verdict in verdicts)
    reason = f"<div>{html.escape(each.reason)}</div>" if each.reason else ""
    links = [
        f'<a href="{table}.html">{table}</a> (<a href="{table}.csv">CSV</a>)'
        for table in dict.fromkeys(cell.split("/")[0] for cell in claim.cells)
        if table in config.tables
    ]
    links += [
        f'<a href="../figures/{number.figure}.png">{number.figure}</a> '
        f'(<a href="../figures/{number.figure}-numbers.csv">CSV</a>)'
        for number in claim.numbers
        if number.figure in config.figures
    ]
    below = f"<div>{'; '.join(links)}</div>" * bool(links) + cells
    return (
        f'<tr id="{claim.id}"><td>{claim.id}</td><th scope="row">{html.escape(claim.claim)} '
        f'<span class="interval">{html.escape(claim.where)}</span>{reason}{below}</th>{words}</tr>'
    )


def _cells(each: Judged, cells: dict[str, str]) -> str:
    """The cells that the verdicts rest on, to open."""
    items = [
        f'<li id="{html.escape(f"{each.claim.id}/{name}".replace(" ", "_"))}">{cells[name]}</li>'
        for name in each.claim.cells
        if cells[name]
    ]
    summary = f"{len(items)} cells: table/block/row/column"
    lines = f"<details><summary>{summary}</summary><ul>{''.join(items)}</ul></details>"
    return lines if items else ""


def _cell(name: str, config: ClaimsConfig, measured: Measured | None, folder: Path) -> str:
    """The printed number with its file, and that of this run with the accuracies of episodes."""
    cell, table = config.cells[name], name.split("/")[0]
    values = []
    if cell.printed:
        interval = f" ± {cell.printed_interval}" if cell.printed_interval else ""
        paper = _link(f"config/paper/{config.papers[table]}.csv", "printed", folder)
        values.append(f"{paper} {cell.printed}{interval}")
    if measured:
        mean = np.mean([accuracies.mean() for accuracies in measured.accuracies])
        tests = measured.tests
        links = ", ".join(_link(test["scores"], f"seed {test['seed']}", folder) for test in tests)
        values.append(f"this run {mean:.2f} (episodes of {links})")
    return f"{html.escape(name)}: {'; '.join(values)}" if values else ""


def _link(file: str, text: str, folder: Path) -> str:
    return f'<a href="{html.escape(os.path.relpath(file, folder))}">{text}</a>'


def _verdict(verdict: Verdict) -> str:
    """The word, and a list of cells to open."""
    word = f'<span class="word {_class(verdict.word)}">{verdict.word}</span>'
    if not verdict.cases:
        return word
    items = "".join(
        f'<li class="{_class(case.word)}">{html.escape(case.name)} {value_of(case)} '
        f"{case.word}</li>"
        for case in verdict.cases
    )
    missing = dict.fromkeys(verdict.missing)
    items += "".join(f'<li class="not-asked">{html.escape(m)} missing</li>' for m in missing)
    return f"<details><summary>{word} {counts_of(verdict)}</summary><ul>{items}</ul></details>"


def _class(word: Word) -> str:
    return word.replace(" ", "-")
