"""What the site has besides the pages of docs/: README as its start, the reference, linked files.

MkDocs calls the functions `on_...` (the key `hooks` of mkdocs.yml). A page links to files of the
repository as it would there; here each of them becomes a page, and a folder's link its text.
"""

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from mkdocs.structure.files import File, Files
from pydantic import BaseModel

from epcore.classifiers import CLASSIFIERS
from epcore.commands.options import parser
from epcore.config.schema import PARTIAL, WHOLE

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)]*)?\)")
IMAGE = re.compile(r'(<img src=")docs/')
FENCED = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
LANGUAGES = {".yaml": "yaml", ".py": "python", ".csv": "text", "": "text"}


# -- pages -----------------------------------------------------------------------------------------


def on_files(files: Files, config: Any) -> Files:
    """Adds the start page, the reference, and a page for each linked file of the repository."""
    made = {
        "index.md": _page(ROOT / "README.md", "index.md"),
        "reference/commands.md": commands(),
        "reference/config.md": configuration(),
        "reference/python.md": python(),
    }
    sources = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    waiting = [ROOT / "CONTRIBUTING.md"]
    waiting += [target for source in sources for target in _linked(source)]
    while waiting:
        target = waiting.pop()
        name = _site_name(target)
        if name not in made and name.startswith("repository/"):
            made[name] = _page(target, name)
            waiting += _linked(target) if target.suffix == ".md" else []
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of a page of docs/ that leave docs/."""
    source = ROOT / "docs" / page.file.src_uri
    return _relinked(markdown, source, page.file.src_uri) if source.is_file() else markdown


def _site_name(path: Path) -> str:
    """The name, in the site, of a file of the repository."""
    if path == ROOT / "README.md":
        return "index.md"
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    name = path.relative_to(ROOT).as_posix()
    return f"repository/{name}" if path.suffix == ".md" else f"repository/{name}.md"


def _page(path: Path, name: str) -> str:
    """A file of the repository as a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return _relinked(text, path, name)
    language = LANGUAGES.get(path.suffix, "text")
    return f"# {path.relative_to(ROOT).as_posix()}\n\n```{language}\n{text}```\n"


def _targets(text: str) -> Iterator[re.Match[str]]:
    for part in FENCED.split(text):
        if not part.startswith("```"):
            yield from LINK.finditer(part)


def _linked(source: Path) -> list[Path]:
    """The files of the repository that a page links to."""
    text = source.read_text(encoding="utf-8")
    found = [_resolved(source, match[3]) for match in _targets(text) if _is_local(match[3])]
    return [path for path in found if path.is_file()]


def _is_local(target: str) -> bool:
    return bool(target) and ":" not in target


def _resolved(source: Path, target: str) -> Path:
    return Path(os.path.normpath(source.parent / target))


def _relinked(text: str, source: Path, name: str) -> str:
    """Links as the page `name` of the site has them; those to folders become text."""

    def change(match: re.Match[str]) -> str:
        mark, shown, target, anchor = match[1], match[2], match[3], match[4] or ""
        if not _is_local(target):
            return match[0]
        path = _resolved(source, target)
        if path.is_dir():
            return shown
        at = os.path.relpath(_site_name(path), PurePosixPath(name).parent)
        return f"{mark}[{shown}]({at}{anchor})"

    parts = FENCED.split(text)
    whole = "".join(part if part.startswith("```") else LINK.sub(change, part) for part in parts)
    return IMAGE.sub(r"\1", whole)


# -- reference -------------------------------------------------------------------------------------


def commands() -> str:
    """What every command of `epcore` says with --help."""
    os.environ["COLUMNS"] = "84"
    lines = ["# Commands", "", f"```text\n{parser().format_help()}```", ""]
    (choices,) = (
        action.choices
        for action in parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    for name, sub in choices.items():
        lines += [f"## epcore {name}", "", f"```text\n{sub.format_help()}```", ""]
    return "\n".join(lines)


def configuration() -> str:
    """Every key of every config file, from the models that read them."""
    lines = [
        "# Config files",
        "",
        "What the files of `config/` may hold; an unknown key is an error. Editors that know",
        "YAML's language server complete and check them: a file's first line names its schema.",
        "",
    ]
    shown: set[type[BaseModel]] = set()
    for name, kind in (WHOLE | PARTIAL).items():
        folder = name in ("scales", "tables")
        lines += [f"## config/{name}/*.yaml" if folder else f"## config/{name}.yaml", ""]
        models = _models(kind)
        lines += [f"::: {m.__module__}.{m.__qualname__}\n" for m in models if m not in shown]
        shown |= {*models}
    return "\n".join(lines)


def _models(kind: Any) -> list[type[BaseModel]]:
    """The models of settings in the type of a file, outermost first."""
    found: dict[type[BaseModel], None] = {}
    waiting = [kind]
    while waiting:
        kind = waiting.pop(0)
        waiting += get_args(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in found:
            found[kind] = None
            waiting += [field.annotation for field in kind.model_fields.values()]
    return list(found)


def python() -> str:
    """The classes that others use, by their docstrings."""
    files = sorted({kind.__module__ for kind in CLASSIFIERS.values()})
    sections = {
        "Layers": ["epcore.propagation"],
        "Episodes and data": [
            "epcore.data.episodes",
            "epcore.data.store",
            "epcore.backbones.checkpoint",
        ],
        "Classifiers": [
            "epcore.classifiers",
            "epcore.classifiers.base",
            *files,
        ],
        "Compared methods": ["epcore.methods", "epcore.methods.base"],
        "Backbones": ["epcore.backbones.base"],
    }
    lines = ["# Python", ""]
    for title, modules in sections.items():
        lines += [f"## {title}", "", *(f"::: {module}\n" for module in modules)]
    return "\n".join(lines)
