"""Texts of tables: the same words in LaTeX and HTML, and plain text stays what it was."""

import html
import random
import re
import string

import pytest

from epcore.report.markup import check, literal, tex_escape, to_html, to_tex, to_text


@pytest.mark.parametrize(
    ("markup", "tex", "page"),
    [
        ("*mini*ImageNet", r"\emph{mini}ImageNet", "<em>mini</em>ImageNet"),
        ("`--`Net-SSL, 20", r"\texttt{--}Net-SSL, 20", "<code>--</code>Net-SSL, 20"),
        ("†*k*-Means", r"$^\dagger$\emph{k}-Means", "†<em>k</em>-Means"),
        ("ResNet-12 ×1/4", r"ResNet-12 $\times$1/4", "ResNet-12 ×1/4"),
        ("α = 0.2", r"$\alpha$ = 0.2", "α = 0.2"),
        ("°No, ±1.96", r"$^\circ$No, $\pm$1.96", "°No, ±1.96"),
        ("pages 3–5, 20\N{THIN SPACE}%", r"pages 3--5, 20\,\%", "pages 3–5, 20\N{THIN SPACE}%"),
        ("*a & b* {c}", r"\emph{a \& b} \{c\}", "<em>a &amp; b</em> {c}"),
        (r"\*not\* \`this\` 5 $", r"*not* `this` 5 \$", "*not* `this` 5 $"),
        ("a_b_c, 2 * 3 * 4, 5 $, `", r"a\_b\_c, 2 * 3 * 4, 5 \$, `", "a_b_c, 2 * 3 * 4, 5 $, `"),
        ("", "", ""),
    ],
)  # fmt: skip
def test_markup_is_written_as_latex_and_as_html(markup, tex, page):
    assert check(markup) == markup
    assert (to_tex(markup), to_html(markup)) == (tex, page)


def test_plain_text_comes_back_as_it_was_whatever_its_characters():
    drawn = random.Random(0)
    characters = string.punctuation * 3 + "ab 1×±α°†–\N{THIN SPACE}\n"
    for _ in range(2000):
        text = "".join(drawn.choices(characters, k=drawn.randrange(12)))
        markup = check(literal(text))
        assert html.unescape(to_html(markup)) == text
        assert to_tex(markup) == tex_escape(text)


def test_plain_text_has_no_character_left_that_latex_would_take_for_a_command():
    for character in string.punctuation:
        written = tex_escape(character)
        if character in "&%$#_{}":
            assert written == "\\" + character
        elif character in "\\~^<>|":
            assert re.fullmatch(r"\\text[a-z]+\{\}", written)
        else:
            assert written == character


@pytest.mark.parametrize(
    ("text", "command"),
    [(r"\textit{mini}ImageNet", r"\textit"), (r"20\,\%", r"\,"), (r"50 \%", r"\%"),
     (r"$\alpha$", r"\alpha"), ("a\\", "\\"), (r"\\\emph{a}", r"\emph")],
)  # fmt: skip
def test_latex_is_refused_with_what_to_write_instead(text, command):
    with pytest.raises(ValueError, match=rf"^{re.escape(command)} is LaTeX; write \*emphasis\*"):
        check(text)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("EPNet on *mini*ImageNet, `--`Net", "EPNet on miniImageNet, --Net"),
        ("*a & b* < c, 5 $", "a & b < c, 5 $"),
    ],
)
def test_as_text_it_keeps_the_words_alone(markup, text):
    assert to_text(markup) == text
