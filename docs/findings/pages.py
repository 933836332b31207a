"""Writes the tables of results in README.md and docs/ from the snapshots in docs/results.

    python docs/findings/pages.py       as `make findings` does

A table stands between <!-- findings: NAME --> and <!-- end -->; the function of that name makes it.
Prose has no number of ours: it points at a table. tests/test_findings.py holds pages to both.
"""

import re

import classifiers
import compared
import demo
import mini
import readings
from cells import ROOT

BLOCK = re.compile(r"(<!-- findings: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
PAGES = (
    "README.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")),
)
MAKERS = {
    make.__name__.replace("_", "-"): make
    for module in (classifiers, compared, demo, mini, readings)
    for make in module.TABLES
}


def rewritten(page: str) -> str:
    """A page with its tables made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{MAKERS[found[2]]()}\n{found[3]}", page)


if __name__ == "__main__":
    for name in PAGES:
        path = ROOT / name
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
