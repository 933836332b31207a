"""Tables of results on the pages are those of the snapshot in docs/results, and nobody's typing."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def findings():
    spec = importlib.util.spec_from_file_location("findings", ROOT / "docs/findings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_show_the_snapshot(findings):
    found = []
    for name in findings.PAGES:
        page = (ROOT / name).read_text(encoding="utf-8")
        assert findings.rewritten(page) == page, f"{name}: run `python docs/findings.py`"
        found += [block for _, block, _ in findings.BLOCK.findall(page)]
    assert sorted(found) == sorted(findings.MAKERS)


def test_a_number_that_is_changed_by_hand_is_noticed(findings):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    line = next(line for line in findings.claims().splitlines() if "demo" in line)
    assert findings.rewritten(page.replace(line, line.replace("| 1", "| 2"))) == page
