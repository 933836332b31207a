"""Text and numbers of files are shown on a page as text, whatever they hold."""

from html.parser import HTMLParser

from epcore.report.claim_config import Case, JudgedClaim, JudgedContrast
from epcore.report.judged import Judged
from epcore.report.lines import Entry, Line
from epcore.report.verdicts import CaseVerdict, Verdict
from epcore.report.writer import fill

EVIL = '<script src="//x">alert(1)</script><img onerror=x>'


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_no_text_of_a_table_becomes_a_tag():
    entries = (Entry(EVIL, EVIL), Entry(EVIL, gray=True))
    lines = [Line(EVIL, source, (source == 1,), (EVIL, EVIL), entries) for source in (1, None)]
    page = fill(
        "table.html", title=EVIL, caption=f"Title {EVIL}. {EVIL}", lead=[EVIL] * 4, marks=1,
        facts=2, beside=EVIL, groups=[(EVIL, 2)], headings=[EVIL], per_cell=2, width=6,
        blocks=[(EVIL, lines)], sources=[EVIL],
    )  # fmt: skip
    found = Tags(page)
    assert not {"script", "img"} & found.tags
    shown = "".join(found.texts)
    # Title 1, caption 2, head 7, block 1, twice label, facts and numbers 6, source 1.
    assert shown.count("alert(1)") == 24


def test_no_text_of_claims_and_metas_becomes_a_tag():
    facts = [(EVIL, EVIL, EVIL)]
    found = Tags(fill("environment.html", title=EVIL, work=facts, facts=facts))
    assert not {"script", "img"} & found.tags
    assert "".join(found.texts).count("alert(1)") == 8
    case = CaseVerdict(EVIL, 1.0, None, "holds")
    verdict = Verdict("holds", (case,), (EVIL,))
    cell = "a/b/c/" + EVIL
    claim = JudgedClaim(
        id=EVIL, where=EVIL, claim=EVIL, ours=False,
        contrasts=(JudgedContrast(cases=(Case(name=EVIL, plus=(cell,)),), above=0),),
    )  # fmt: skip
    shown = {
        "printed": EVIL,
        "paper": EVIL,
        "mean": EVIL,
        "tests": [{"seed": EVIL, "scores": EVIL}],
    }
    page = fill(
        "claims.html", title=EVIL, note=EVIL, counts=[EVIL], tables=["a"], figures=[],
        groups=[(EVIL, [Judged(claim, verdict, verdict, verdict, EVIL)])], cells={cell: shown},
    )  # fmt: skip
    found = Tags(page)
    assert not {"script", "img"} & found.tags
    # Title and heading 2, note, counts, group; claim 3, reason; cell 4; verdicts 3 * 2.
    assert "".join(found.texts).count("alert(1)") == 19
