"""The one exception that stands for a mistake a person can mend, and text that a terminal takes."""

import io
import sys
import unicodedata

# Controls of terminals, halves of characters, ends of lines and changes of the direction of text.
CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def visible(text: str) -> str:
    """The text, with what would control a terminal written out, such as \\x1b."""
    if text.isprintable():
        return text
    return "".join(repr(letter)[1:-1] if _controls(letter) else letter for letter in text)


def _controls(letter: str) -> bool:
    return unicodedata.category(letter) in CATEGORIES or letter in DIRECTIONS


def replace_unencodable() -> None:
    """Lets stdout print a question mark for what its encoding lacks; stderr escapes it already."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


class UserError(Exception):
    """A wrong config key, file or request: one line that says what, where and what to do.

    The command line prints `problem; remedy` without a traceback and exits with a code other than
    0.

    Example:
        >>> str(UserError("x.pt is damaged", "delete it"))
        'x.pt is damaged; delete it'
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem, self.remedy = _line(problem), _line(remedy)
        super().__init__("; ".join(filter(None, (self.problem, self.remedy))).rstrip())


def _line(text: str) -> str:
    """One line; messages of other libraries, quoted in ours, may have several."""
    return visible(" ".join(text.split("\n")))
