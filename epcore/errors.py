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

    The command line prints the message without a traceback and exits with a code other than 0.
    """

    def __init__(self, message: str) -> None:
        # Messages of other libraries, quoted in ours, may have several lines.
        super().__init__(visible(" ".join(message.split("\n")).rstrip()))
