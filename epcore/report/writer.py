"""Fills the Jinja templates of tables and pages, which lie in the folder templates/.

LaTeX is full of braces, so its templates write << value >> and <% statement %>.
"""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from epcore.report.markup import to_html, to_tex


def fill(template: str, **values: object) -> str:
    """The text of a template, such as `table.tex`."""
    return _environment(template.endswith(".tex")).get_template(template).render(values)


def fill_file(template: Path, **values: object) -> str:
    """The text of a LaTeX template by its path."""
    return _environment(latex=True).from_string(template.read_text("utf-8")).render(values)


@cache
def _environment(latex: bool) -> Environment:
    marks: dict[str, Any] = {
        "variable_start_string": "<<",
        "variable_end_string": ">>",
        "block_start_string": "<%",
        "block_end_string": "%>",
        "comment_start_string": "<#",
        "comment_end_string": "#>",
    }
    environment = Environment(
        loader=PackageLoader("epcore.report"),
        undefined=StrictUndefined,
        autoescape=not latex,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **(marks if latex else {}),
    )
    environment.filters |= {"tex": to_tex, "html": lambda text: Markup(to_html(text))}
    return environment
