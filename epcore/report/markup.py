r"""The markup of titles, notes, labels and headings of tables, written as LaTeX and as HTML.

*emphasis*, **strong**, _italic_, `code` and $math$, in which letters are italic, and `_` and `^`
lower and raise the character or the {group} behind them. Every other character stands for itself,
also ×, ±, α, °, – and a thin space (U+2009). A backslash before *, _, `, $ or another backslash
makes it one of them. Spans do not hold spans. LaTeX makes a dash of two hyphens outside of `code`.
"""

import html
import re
from typing import Annotated

from pydantic import AfterValidator

SPAN = re.compile(
    r"\*\*(?P<strong>\S.*?)\*\*|\*(?P<em>\S.*?)\*|(?<!\w)_(?P<i>\S.*?)_|`(?P<code>.+?)`"
    r"|\$(?P<math>.+?)\$|(?:\\(?=[\\*_`$]))?(?P<text>.)",
    re.DOTALL,
)
SHIFTED = re.compile(r"(?P<shift>[_^])(?P<group>\{.*?\}|.)|(?P<letters>[A-Za-z]+)|.")
COMMANDS = {"strong": "textbf", "em": "emph", "i": "textit", "code": "texttt"}
# Commands of math; outside of it they stand between two $.
SYMBOLS = {"×": r"\times", "±": r"\pm", "α": r"\alpha", "°": r"^\circ"}
ESCAPES = {character: "\\" + character for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{THIN SPACE}": r"\,",
    "–": "--",
    **{symbol: f"${command}$" for symbol, command in SYMBOLS.items()},
}
# What is written as a command in math, and the letter behind it.
MATH = re.compile(r"([&%#×±α°])(?=([A-Za-z])?)")


def literal(text: str) -> str:
    """Plain text as markup that says the same."""
    return re.sub(r"[\\*_`$]", r"\\\g<0>", text)


def check(text: str) -> str:
    """The text itself.

    Raises:
        ValueError: if it holds a LaTeX command.
    """
    if command := re.search(r"\\(?![\\*_`$])(?:[A-Za-z]+|.?)", text.replace(r"\\", "")):
        raise ValueError(
            f"{command[0]} is LaTeX; write *emphasis*, **strong**, _italic_, `code` or $math$, and "
            "characters such as % and × as they are"
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


def html_escape(text: str) -> str:
    """Plain text as HTML."""
    return html.escape(text, quote=False)


def _span_to_tex(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    text = match[kind]
    if kind == "math":
        return f"${MATH.sub(_symbol_to_tex, text)}$"
    return rf"\{COMMANDS[kind]}{{{tex_escape(text)}}}" if kind in COMMANDS else tex_escape(text)


def _symbol_to_tex(match: re.Match[str]) -> str:
    command = SYMBOLS.get(match[1]) or ESCAPES[match[1]]
    return f"{command} " if match[2] else command  # the letter is none of the command's


def _span_to_html(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    text = match[kind]
    if kind == "math":
        return SHIFTED.sub(_math_to_html, text)
    return f"<{kind}>{html_escape(text)}</{kind}>" if kind in COMMANDS else html_escape(text)


def _math_to_html(match: re.Match[str]) -> str:
    if match["shift"]:
        tag = {"_": "sub", "^": "sup"}[match["shift"]]
        return f"<{tag}>{html_escape(match['group'].strip('{}'))}</{tag}>"
    return f"<i>{match['letters']}</i>" if match["letters"] else html_escape(match[0])
