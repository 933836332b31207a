"""The site of the documentation: built strictly, complete, and without a dead link."""

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """What a page refers to, and the places in it that others may."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.targets += [given[key] for key in ("href", "src") if given.get(key)]
        self.places |= {given[key] for key in ("id", "name") if given.get(key)}


def test_no_link_is_dead_and_none_leaves_without_saying_so(site):
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
        if path.name != "404.html"
    }
    dead = []
    for path, page in pages.items():
        for target in page.targets:
            link = urlsplit(target)
            if link.scheme or target in (".", "#"):
                continue
            file = (path.parent / unquote(link.path)).resolve() if link.path else path
            place = unquote(link.fragment)
            lost = not file.exists() or (
                place and file in pages and place not in pages[file].places | {"__toc", "__search"}
            )
            dead += [f"{path.name}: {target}"] if lost else []
    assert len(pages) > 30
    assert dead == []


def test_it_has_every_page_command_and_config_file(site):
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()
    commands = (site / "reference/commands.html").read_text(encoding="utf-8")
    config = (site / "reference/config.html").read_text(encoding="utf-8")
    assert "epcore forecast" in commands
    for file in (ROOT / "config").glob("*.yaml"):
        assert f"config/{file.name}" in config
    classes = (site / "reference/python.html").read_text(encoding="utf-8")
    assert "EmbeddingPropagation" in classes
    assert "LaplacianShot" in classes
