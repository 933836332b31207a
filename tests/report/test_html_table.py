"""Tables as pages: the same numbers as in LaTeX, whole by themselves, readable by programs too."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from plans import plan_of

CONFIG = Path(__file__).parents[2] / "config"
# A table of each kind.
TABLES = ["main", "ablation", "placement", "classifiers", "compared-gaps", "imagenetfs", "n-way"]
VOID = {"meta", "br"}


class Page(HTMLParser):
    """The cells of every row, as (tag, attributes, text); text of each tag; an unbalanced tag."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.said, self.open, self.attributes = [], {}, [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.attributes += attributes
        if tag in VOID:
            return
        self.open.append(tag)
        self.said.setdefault(tag, []).append("")
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append([tag, dict(attributes), ""])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.said[tag][-1] += data
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1][2] += data


def page_of(name):
    return Page(Path(f"{name}.html").read_text(encoding="utf-8"))


def rows_of(name):
    """The rows of a table at scale demo, block after block."""
    return [row for block in plan_of("demo").tables.table(name).blocks for row in block.rows]


def plain(entry):
    """A number of a LaTeX table as the page has it."""
    entry = re.sub(r"\\textcolor\{gray\}\{(.*)\}$", r"\1", entry)
    entry = re.sub(r"\\ci\{(.*?)\}", r" ±\1", entry).replace("$", "")
    return "–" if entry == "--" else entry.replace("-", "−").replace(r"\checkmark", "✓")


@pytest.mark.parametrize("name", TABLES)
def test_a_page_is_the_latex_table_for_those_who_cannot_see_it_too(typeset, name):
    """The same numbers in the same places; rows, columns and groups named; no LaTeX is left."""
    tex, scores = typeset(name)
    check_words(name)
    inner = tex.split(r"\toprule", 1)[1].split(r"\bottomrule", 1)[0]
    lines = [line.removesuffix(r" \\").split(" & ") for line in inner.splitlines() if "&" in line]
    body = [line for line in lines if line[0].strip() and "multicolumn" not in " ".join(line)]
    page = page_of(name)
    rows = [row for row in page.rows if row[0][1].get("scope") == "row"]
    assert len(rows) == len(body) > 0
    for row, line in zip(rows, body, strict=True):
        assert [text for _, _, text in row[1:]] == [plain(entry.strip()) for entry in line[1:]]
    shown = " ".join(page.said["td"])
    for accuracies in scores.values():
        assert f"{100 * accuracies.mean():.2f}" in shown
    widths = [sum(int(a.get("colspan", 1)) for _, a, _ in row) for row in page.rows]
    below_first = [row for row in page.rows if row[0][1].get("scope") in ("row", "rowgroup")]
    assert {widths[page.rows.index(row)] for row in below_first} == {widths[0]}
    assert {a["scope"] for row in page.rows for tag, a, _ in row if tag == "th"} >= {
        "row", "rowgroup", "colgroup",
    }  # fmt: skip
    assert all("scope" in a for row in page.rows for tag, a, _ in row if tag == "th")
    assert len(page.said["caption"]) == len(page.said["title"]) == 1
    assert page.said["caption"][0].startswith(page.said["title"][0])
    assert ("lang", "en") in page.attributes
    assert len(page.said["tbody"]) == len(plan_of("demo").tables.table(name).blocks)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["main", "ssl-large"])
def test_no_latex_is_left_on_a_page_of_another_scale_with_two_seeds(typeset, name):
    typeset(name, "small", seeds=2)
    check_words(name)


def check_words(name):
    """No LaTeX is left on a page, and nothing is fetched."""
    text = Path(f"{name}.html").read_text(encoding="utf-8")
    shown = text.split("<body>")[1]
    assert not re.search(r"[\\$]|\{(?![^}]*:)", shown)
    assert not re.search(r"src=|href=|url\(|@import|<script|fetch|import", text)


def headers(text):
    """Attributes and label of every row of a page, but of those below another one."""
    found = re.findall(r'<tr([^>]*)>\s*<th scope="row">(.*?)</th>', text)
    return [(row, label) for row, label in found if not label.startswith("\N{EM SPACE}")]


def test_a_page_says_where_printed_rows_are_from_under_the_numbers_in_its_rows(typeset):
    typeset("main")
    sources, found = page_of("main").said["li"], []
    for _, label in headers(Path("main.html").read_text(encoding="utf-8")):
        number = re.search(r"<sup>(\d+)</sup>$", label)
        found.append(sources[int(number[1]) - 1] if number else "")
    assert found == [row.source for row in rows_of("main")]
    assert len(sources) == len(set(sources)) > 15


def test_rows_of_this_run_are_marked_as_such(typeset):
    typeset("main", "both")
    text = Path("main.html").read_text(encoding="utf-8")
    marked = [row == ' class="ours"' for row, _ in headers(text)]
    assert marked == [row.recipe is not None for row in rows_of("main")]
    printed = (CONFIG / "paper" / "main.csv").read_text(encoding="utf-8")
    assert text.count('class="gray"') == printed.count(",224 px") > 0


def test_the_page_says_that_stand_in_data_are_not_comparable_and_the_scale_paper_does_not(typeset):
    for scale, says, group in (
        ("demo", True, "miniImageNet, here glyph-mini"),
        ("paper", False, "miniImageNet"),
    ):
        typeset("main", scale)
        caption = page_of("main").said["caption"][0]
        assert ("its numbers are not comparable with the paper's" in caption) == says
        assert f"{group}: " in caption
        assert group in page_of("main").said["th"]
