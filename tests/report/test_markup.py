"""Texts of tables: the same words in LaTeX and HTML, whatever their characters."""

import html
import random
import re
import string

import pytest

from epcore.report.markup import to_html, to_tex, to_text


@pytest.mark.parametrize(
    ("markup", "tex", "page"),
    [
        ("*mini*ImageNet", r"\emph{mini}ImageNet", "<em>mini</em>ImageNet"),
        ("--Net-SSL, 20", "-{}-Net-SSL, 20", "--Net-SSL, 20"),
        ("†*k*-Means", r"$^\dagger$\emph{k}-Means", "†<em>k</em>-Means"),
        ("ResNet-12 ×1/4", r"ResNet-12 $\times$1/4", "ResNet-12 ×1/4"),
        ("α = 0.2", r"$\alpha$ = 0.2", "α = 0.2"),
        ("°No, ±1.96", r"$^\circ$No, $\pm$1.96", "°No, ±1.96"),
        ("pages 3–5, 20\N{THIN SPACE}%", r"pages 3--5, 20\,\%", "pages 3–5, 20\N{THIN SPACE}%"),
        ("*a & b* {c}", r"\emph{a \& b} \{c\}", "<em>a &amp; b</em> {c}"),
        ("a_b_c, 2 * 3 * 4, 5 $, `", r"a\_b\_c, 2 * 3 * 4, 5 \$, `", "a_b_c, 2 * 3 * 4, 5 $, `"),
        ("", "", ""),
    ],
)
def test_markup_is_written_as_latex_and_as_html(markup, tex, page):
    assert (to_tex(markup), to_html(markup)) == (tex, page)


def test_without_emphasis_plain_text_stays_what_it_was():
    drawn = random.Random(0)
    characters = string.punctuation.replace("*", "") * 3 + "ab 1×±α°†–\N{THIN SPACE}\n"
    for _ in range(2000):
        text = "".join(drawn.choices(characters, k=drawn.randrange(12)))
        assert html.unescape(to_html(text)) == to_text(text) == text


def test_plain_text_has_no_character_left_that_latex_would_take_for_a_command():
    for character in string.punctuation:
        written = to_tex(character)
        if character in "&%$#_{}":
            assert written == "\\" + character
        elif character in "\\~^<>|":
            assert re.fullmatch(r"\\text[a-z]+\{\}", written)
        else:
            assert written == character


def test_as_text_it_keeps_the_words_alone():
    assert to_text("EPNet on *mini*ImageNet, *a & b* < c") == "EPNet on miniImageNet, a & b < c"
