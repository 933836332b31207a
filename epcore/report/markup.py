r"""The markup of titles, notes, labels and headings of tables, written as LaTeX and as HTML.

*emphasis* and `code`; every other character stands for itself, also ×, ±, α, °, †, – and a thin
space (U+2009). A backslash before *, ` or another backslash makes it one of them. Spans do not hold
spans. LaTeX makes a dash of two hyphens outside of `code`.
"""

import html
import re
from typing import Annotated

from pydantic import AfterValidator

SPAN = re.compile(r"\*(?P<em>\S.*?)\*|`(?P<code>.+?)`|(?:\\(?=[\\*`]))?(?P<text>.)", re.DOTALL)
COMMANDS = {"em": "emph", "code": "texttt"}
ESCAPES = {character: "\\" + character for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{THIN SPACE}": r"\,",
    "–": "--",
    "×": r"$\times$",
    "±": r"$\pm$",
    "α": r"$\alpha$",
    "°": r"$^\circ$",
    "†": r"$^\dagger$",
}


def literal(text: str) -> str:
    """Plain text as markup that says the same."""
    return re.sub(r"[\\*`]", r"\\\g<0>", text)


def check(text: str) -> str:
    """The text itself.

    Raises:
        ValueError: if it holds a LaTeX command.
    """
    if command := re.search(r"\\(?![\\*`])(?:[A-Za-z]+|.?)", text.replace(r"\\", "")):
        raise ValueError(
            f"{command[0]} is LaTeX; write *emphasis* or `code`, and characters such as % and × as "
            "they are"
        )
    return text


# Text of a config file in this markup.
Markup = Annotated[str, AfterValidator(check)]


def to_tex(text: str) -> str:
    """Markup as LaTeX."""
    return SPAN.sub(_span_to_tex, text)


def to_html(text: str) -> str:
    """Markup as HTML."""
    return SPAN.sub(_span_to_html, text)


def to_text(text: str) -> str:
    """Markup as plain text."""
    return html.unescape(re.sub(r"<[^>]*>", "", to_html(text)))


def tex_escape(text: str) -> str:
    """Plain text as LaTeX."""
    return "".join(ESCAPES.get(character, character) for character in text)


def _span_to_tex(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    text = tex_escape(match[kind])
    return rf"\{COMMANDS[kind]}{{{text}}}" if kind in COMMANDS else text


def _span_to_html(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    text = html.escape(match[kind], quote=False)
    return f"<{kind}>{text}</{kind}>" if kind in COMMANDS else text
