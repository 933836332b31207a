"""TeX of labels and captions becomes HTML, and what is not understood stays to be seen."""

import pytest

from epcore.plan.tables import tex_escape
from epcore.report.tex_to_html import tex_to_html


@pytest.mark.parametrize(
    ("tex", "html"),
    [
        (r"\textit{mini}ImageNet", "<em>mini</em>ImageNet"),
        (r"\texttt{--}Net$_{SSL}$, 20", "<code>--</code>Net<sub>SSL</sub>, 20"),
        ("pages 3--5", "pages 3–5"),
        (r"$^*k$-Means", "<sup>*</sup><i>k</i>-Means"),
        (r"$224\times224$ pixels", "224×224 pixels"),
        (r"ResNet-12 $\times$1/4", "ResNet-12 ×1/4"),
        (r"20\,\%", "20\N{THIN SPACE}%"),
        (r"\textbf{not \emph{at all} so}", "<strong>not <em>at all</em> so</strong>"),
        (r"EPNet\textsuperscript{12}", "EPNet<sup>12</sup>"),
        ("Tab.~1 {in braces}", "Tab.\N{NO-BREAK SPACE}1 in braces"),
        (r"et al.\ say \# 1", "et al. say # 1"),
        ("a < b & c", "a &lt; b &amp; c"),
        (r"as \cite{gidaris} says", r"as \cite gidaris says"),
        ("", ""),
    ],
)
def test_tex_becomes_html(tex, html):
    assert tex_to_html(tex) == html


def test_what_was_escaped_for_latex_comes_back_as_it_was():
    text = r"50 % & #1_{x} $ ~ ^ \ <>|"
    expected = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert tex_to_html(tex_escape(text)) == expected


@pytest.mark.parametrize("text", ["$x", r"\emph{x", r"\emph", "x}", "x$", r"\textit"])
def test_tex_that_is_not_closed_ends_all_the_same(text):
    assert isinstance(tex_to_html(text), str)
