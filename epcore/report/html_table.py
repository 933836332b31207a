"""A table as a page for browsers that stands alone: no style, font or script from elsewhere."""

import html
import re

from epcore.report.layout import Block, Layout, Line, Number
from epcore.report.markup import to_html

# Of what stands in main alone: the first page of the report shows several pages below each other.
STYLE = """\
body:has(> main) { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem; }
body:has(> main) { color: #111; background: #fff; }
main { width: fit-content; max-width: 100%; margin: auto; }
main .scroll { overflow-x: auto; }
main table { border-collapse: collapse; border-block: 2px solid #111; margin-bottom: 1.5rem; }
main caption { caption-side: top; text-align: left; padding-bottom: .9rem; }
main caption div { max-width: min(56rem, 100vw - 3rem); }
main th, main td { padding: .12rem .45rem; text-align: left; font-weight: normal; }
main th, main td { white-space: nowrap; }
main thead th { text-align: center; font-weight: 600; vertical-align: bottom; }
main thead tr:first-child th:first-child { text-align: left; }
main thead .pair { font-weight: normal; font-style: italic; text-align: right; }
main tbody { border-top: 1px solid #111; }
main th[scope=rowgroup] { font-weight: 600; text-align: center; background: #f2f2f2; }
main td { text-align: right; font-variant-numeric: tabular-nums; }
main td.mark { text-align: center; }
main tr.ours { background: #e6f1f8; }
main tr.ours th { font-weight: 600; }
main .beside { color: #444; }
main .interval { font-size: 80%; }
main sup, main sub { line-height: 0; }
main .gray { color: #6b6b6b; }
main ol { font-size: 85%; columns: 2 20rem; padding-left: 1.6rem; }
main h2 { font-size: 100%; margin-bottom: .3rem; }"""


def document(title: str, body: str) -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def page(layout: Layout) -> str:
    """The page of a table, its caption above and its sources below."""
    caption = to_html(layout.caption)
    lines = [
        '<div class="scroll">',
        "<table>",
        f"<caption><div>{caption}</div></caption>",
        "<thead>",
        *_head(layout),
        "</thead>",
    ]
    for block in layout.blocks:
        lines += _block(block, layout)
    lines += ["</table>", "</div>"]
    if layout.sources:
        items = (f"<li>{to_html(source)}</li>" for source in layout.sources)
        lines += ["<h2>Printed rows from</h2>", "<ol>", *items, "</ol>"]
    title = html.unescape(re.sub(r"<[^>]*>", "", caption.split(". ", 1)[0]))
    return document(title, "\n".join(lines))


def _head(layout: Layout) -> list[str]:
    """Data set, shot, then what stands beside each other in a cell."""
    rows = 2 if layout.beside is None else 3
    lead = [layout.first, *layout.marks, *layout.facts]
    tops = [
        f'<th rowspan="{rows}" scope="col">{to_html(name)}</th>'
        if name
        else f'<td rowspan="{rows}"></td>'
        for name in lead
    ]
    tops += [
        f'<th colspan="{span}" scope="colgroup">{to_html(name)}</th>' for name, span in layout.spans
    ]
    shots = [
        f'<th colspan="{layout.per_cell}" scope="colgroup">{to_html(heading)}</th>'
        for heading in layout.headings
    ]
    lines = [_row(tops), _row(shots)]
    if layout.beside is not None:
        names = ["this run", layout.beside] * len(layout.headings)
        lines.append(_row([f'<th class="pair" scope="col">{name}</th>' for name in names]))
    return lines


def _block(block: Block, layout: Layout) -> list[str]:
    heading = to_html(block.heading)
    return [
        "<tbody>",
        _row([f'<th colspan="{layout.width}" scope="rowgroup">{heading}</th>']),
        *(_line(line, layout) for line in block.lines),
        "</tbody>",
    ]


def _line(line: Line, layout: Layout) -> str:
    label = "\N{EM SPACE}" * line.below + to_html(line.label)
    if line.source:
        label += f"<sup>{line.source}</sup>"
    cells = [f'<th scope="row">{label}</th>']
    cells += [f'<td class="mark">{"✓" if mark else ""}</td>' for mark in line.marks]
    cells += [f"<td>{html.escape(fact)}</td>" for fact in line.facts]
    for place, number in enumerate(line.numbers):
        beside = ' class="beside"' if place % layout.per_cell else ""
        cells.append(f"<td{beside}>{_number(number)}</td>")
    return _row(cells, "" if line.source else ' class="ours"')


def _number(number: Number | None) -> str:
    if number is None:
        return ""
    text = html.escape(number.value).replace("-", "\N{MINUS SIGN}") or "–"
    if number.interval:
        text += f'<span class="interval"> ±{html.escape(number.interval)}</span>'
    text += "°" if number.within_noise else ""
    return f'<span class="gray">{text}</span>' if number.gray else text


def _row(cells: list[str], attributes: str = "") -> str:
    return f"<tr{attributes}>{''.join(cells)}</tr>"
