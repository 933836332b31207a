r"""TeX of labels and captions as HTML: the few commands that texts of tables use.

Known are the commands below, `$...$` with `_` and `^`, `~`, `--` and escaped characters. Any other
command stays as it is written, so that what is not understood is seen and nothing is lost.
"""

import html
import re
from collections.abc import Iterator

WRAPPED = {
    r"\emph": "em",
    r"\textit": "em",
    r"\textbf": "strong",
    r"\texttt": "code",
    r"\textsuperscript": "sup",
    "_": "sub",
    "^": "sup",
}
SYMBOLS = {
    r"\times": "×",
    r"\pm": "±",
    r"\checkmark": "✓",
    r"\alpha": "α",
    r"\textbackslash": "\\",
    r"\textasciitilde": "~",
    r"\textasciicircum": "^",
    r"\textless": "<",
    r"\textgreater": ">",
    r"\textbar": "|",
    r"\quad": "\N{EM SPACE}",
    r"\,": "\N{THIN SPACE}",
    "~": "\N{NO-BREAK SPACE}",
}
TOKEN = re.compile(r"\\[a-zA-Z]+ *|\\.|--|[{}$_^~]|[a-zA-Z]+|.", re.DOTALL)


def tex_to_html(text: str) -> str:
    """TeX as HTML, `&`, `<` and `>` escaped."""
    return _until(iter(TOKEN.findall(text)), None)


def _until(tokens: Iterator[str], end: str | None, maths: bool = False) -> str:
    """What the tokens say up to `end`, or to the last of them."""
    said = ""
    for token in tokens:
        if token == end:
            break
        said += _one(token, tokens, maths)
    return said


def _one(token: str, tokens: Iterator[str], maths: bool = False) -> str:
    """One token, with the argument that it takes of those behind it."""
    name = token.rstrip()
    if name in WRAPPED and (maths or name.startswith("\\")):
        argument = next(tokens, "")
        inner = _until(tokens, "}") if argument == "{" else _one(argument, tokens)
        if name == r"\texttt":  # in which TeX makes no dash of two hyphens
            inner = inner.replace("–", "--")
        return f"<{WRAPPED[name]}>{inner}</{WRAPPED[name]}>"
    if name in SYMBOLS:
        return html.escape(SYMBOLS[name], quote=False)
    if name.startswith("\\"):
        return f"{name} " if name[1:].isalpha() else html.escape(token[1:], quote=False)
    if token == "{":
        return _until(tokens, "}", maths)
    if token == "$" and not maths:
        return _until(tokens, "$", maths=True)
    if token == "--":
        return "–"
    if maths and token.isalpha():
        return f"<i>{token}</i>"
    return html.escape(token, quote=False)
