"""Text and numbers of files are shown on a page as text, whatever they hold."""

from html.parser import HTMLParser

from epcore.report.html_table import page
from epcore.report.layout import Block, Layout, Line, Number

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
    numbers = (Number(EVIL, EVIL), Number(EVIL, gray=True))
    line = Line(EVIL, 1, (True,), (EVIL, EVIL), numbers)
    block = Block(EVIL, (line, Line(EVIL, None, (False,), (EVIL, EVIL), numbers)))
    layout = Layout(
        label=EVIL,
        caption=f"Title {EVIL}. {EVIL}",
        first=EVIL,
        marks=(EVIL,),
        facts=(EVIL, EVIL),
        beside="paper",
        groups=(EVIL,),
        headings=(EVIL,),
        blocks=(block,),
        sources=(EVIL,),
    )
    found = Tags(page(layout))
    assert not {"script", "img"} & found.tags
    shown = "".join(found.texts)
    # Title 1, caption 2, head 6, block 1, twice label, facts and numbers 6, source 1.
    assert shown.count("alert(1)") == 23
