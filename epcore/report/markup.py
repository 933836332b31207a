"""Titles, notes, labels and headings of tables, written as LaTeX, as HTML and as plain text.

They hold *emphasis*; every other character stands for itself, also two hyphens, ×, ±, α, °, †, –
and a thin space (U+2009).
"""

import html
import re

EMPHASIS = re.compile(r"\*(\S.*?)\*", re.DOTALL)
ESCAPES = {character: "\\" + character for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "-": "-{}",  # before another, with which it would be a dash
    "\N{THIN SPACE}": r"\,",
    "–": "--",
    "×": r"$\times$",
    "±": r"$\pm$",
    "α": r"$\alpha$",
    "°": r"$^\circ$",
    "†": r"$^\dagger$",
}
ESCAPED = re.compile(f"-(?=-)|[{re.escape(''.join(set(ESCAPES) - {'-'}))}]")


def to_tex(text: str) -> str:
    """Markup as LaTeX."""
    return EMPHASIS.sub(r"\\emph{\1}", ESCAPED.sub(lambda found: ESCAPES[found[0]], text))


def to_html(text: str) -> str:
    """Markup as HTML."""
    return EMPHASIS.sub(r"<em>\1</em>", html.escape(text, quote=False))


def to_text(text: str) -> str:
    """Markup as plain text."""
    return EMPHASIS.sub(r"\1", text)
