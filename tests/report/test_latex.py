"""The typeset table: every number in its place, and it compiles wherever it stands."""

import csv
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from scipy import stats

from epcore.errors import UserError
from epcore.plan import Plan
from epcore.plan.stages import AggregateStage, LatexStage
from epcore.plan.tables import tex_escape
from epcore.report import aggregate, latex

CONFIG = Path(__file__).parents[2] / "config"
COLUMNS = ["mini1", "mini5", "tier1", "tier5"]
NOT_COMPARABLE = "its numbers are not comparable with the paper's"


@pytest.fixture
def written(aggregate_stage, latex_stage, scores, paper):
    """The table of fabricated scores, as text."""
    aggregate.run(aggregate_stage, paper, Path("main.csv"))
    latex.run(latex_stage, Path("main.csv"), Path("main.tex"))
    return Path("main.tex").read_text(encoding="utf-8")


def rows_of(text):
    """The lines of the table that hold numbers, split at their &."""
    lines = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines()]
    return [line for line in lines if len(line) == 10 and line[0] != "&" and line[0] != ""]


def entries_of(text, stage):
    """(block, row, column) -> what stands under this run and under paper."""
    places = [(block.block, row.row) for block in stage.blocks for row in block.rows]
    found = {}
    for (block, row), line in zip(places, rows_of(text), strict=True):
        for number, column in enumerate(COLUMNS):
            found[block, row, column] = line[2 + 2 * number], line[3 + 2 * number]
    return found


def test_every_printed_number_stands_in_its_cell_and_gray_if_at_224_pixels(
    written, latex_stage, paper
):
    entries = entries_of(written, latex_stage)
    with paper.open(newline="", encoding="utf-8") as file:
        printed = {(c["block"], c["row"], c["column"]): c for c in csv.DictReader(file)}
    gray = set()
    for place, (_, shown) in entries.items():
        if place not in printed:
            assert shown == "--"
            continue
        cell = printed[place]
        expected = cell["accuracy"]
        if cell["interval"]:
            expected += rf"\ci{{{cell['interval']}}}"
        if cell["note"] == "224 px":
            gray.add(place)
            expected = rf"\textcolor{{gray}}{{{expected}}}"
        assert shown == expected
    assert {(block, row) for block, row, _ in gray} == {("RESNET-12", "Robust-20++")}
    assert printed.keys() <= entries.keys()


def test_our_numbers_have_two_decimals_and_their_interval(written, latex_stage, scores):
    for place, (shown, _) in entries_of(written, latex_stage).items():
        if place not in scores:
            assert shown == "--"
            continue
        percent = 100 * scores[place]
        low, high = stats.t.interval(0.95, 39, loc=percent.mean(), scale=stats.sem(percent))
        printed = re.fullmatch(r"(\d\d\.\d\d)\\ci\{(\d\.\d\d)\}", shown)
        assert float(printed[1]) == pytest.approx(percent.mean(), abs=0.0051)
        assert float(printed[2]) == pytest.approx((high - low) / 2, abs=0.0051)


def test_rows_are_labelled_and_count_parameters_as_we_and_as_the_paper_do(written):
    labels = [(line[0], line[1]) for line in rows_of(written)]
    assert (r"\texttt{--}Net", "113K (112K)") in labels
    assert sum(label == "EPNet" for label, _ in labels) == 3
    assert any(label.startswith("GNN") and count == "1619K" for label, count in labels)


def test_parameters_are_shown_even_if_the_first_column_is_not_of_this_scale(
    aggregate_stage, latex_stage, scores, paper
):
    later = [cell for cell in aggregate_stage.cells if cell.column.startswith("tier")]
    stage = aggregate_stage.model_copy(update={"cells": tuple(later)})
    aggregate.run(stage, paper, Path("main.csv"))
    latex.run(latex_stage, Path("main.csv"), Path("main.tex"))
    epnet = [line for line in rows_of(Path("main.tex").read_text()) if line[0] == "EPNet"]
    assert epnet[0][1].endswith("K (112K)")


def test_every_source_of_the_literature_is_listed_once_below_the_table(written, latex_stage):
    below = written[written.index(r"\end{tabular}") :]
    sources = {row.source for block in latex_stage.blocks for row in block.rows} - {""}
    assert len(sources) > 15
    for source in sources:
        assert below.count(f"}}{source}") == 1
    tpn = [line[0] for line in rows_of(written) if line[0].startswith("TPN")]
    assert len(tpn) == 2
    assert tpn[0] == tpn[1]  # one paper, one number
    number = tpn[0].removeprefix("TPN")
    assert f"{number}Liu et al., ICLR 2019" in below


def caption(config, scale):
    return LatexStage.model_validate_json(Plan(config, scale).latex("main")).caption


def test_the_caption_says_what_this_run_is_and_that_it_is_not_comparable(written):
    note = "Scale demo: images of 28x28 pixels, narrowed networks and few epochs"
    assert note in written
    assert NOT_COMPARABLE in written
    assert "rendered characters of 100 classes" in written
    assert "over 1000 test episodes" in written


def test_only_a_comparable_scale_goes_without_the_warning():
    assert NOT_COMPARABLE not in caption(CONFIG, "paper")
    for scale in ("demo", "small", "grocery"):
        assert NOT_COMPARABLE in caption(CONFIG, scale)


def test_a_narrowed_network_is_marked_as_such(written):
    assert r"ResNet-12 $\times$1/4" in written
    assert r"WRN-28-10 $\times$1/5, depth $\times$1/4" in written
    assert r"{Conv-4} \\" in written


def test_special_characters_of_plain_texts_are_escaped():
    assert tex_escape("50 % & #1_{x} $") == r"50 \% \& \#1\_\{x\} \$"
    assert tex_escape(r"a\b ~ ^") == r"a\textbackslash{}b \textasciitilde{} \textasciicircum{}"


@pytest.mark.parametrize("content", [None, "", "table,block\nmain,CONV-4\n"])
def test_a_damaged_table_is_named_in_one_line(latex_stage, tmp_path, content):
    path = tmp_path / "main.csv"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        latex.run(latex_stage, path, tmp_path / "main.tex")
    assert len(str(caught.value).splitlines()) == 1
    assert str(path) in str(caught.value)
    assert not (tmp_path / "main.tex").exists()


# -- compiled --------------------------------------------------------------------------------------

SPECIAL = r"50 % & #1_{x} $ ~ ^ \ <>|"
DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,xcolor}
\begin{document}
See Table~\ref{tab:main}, before.
\input{main}
Words after.
\end{document}
"""


def compiled(file):
    """The text of a LaTeX file's PDF."""
    for program in ("latexmk", "pdftotext"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    done = subprocess.run(
        ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", file],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    command = ["pdftotext", "-layout", Path(file).with_suffix(".pdf"), "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def with_special_characters(config, scores, paper):
    """The table of a config whose plain texts hold every special character."""
    for file, old in (
        ("scales/demo.yaml", "Scale demo: images"),
        ("datasets.yaml", "rendered characters of 100 classes"),
        ("tables/main.yaml", "Garcia and Bruna, ICLR 2018"),
    ):
        text = (config / file).read_text(encoding="utf-8")
        quoted = SPECIAL.replace("\\", "\\\\") if '"' + old in text else SPECIAL
        new = text.replace(old, quoted)
        assert new != text
        if file == "datasets.yaml":
            new = new.replace(SPECIAL, f"'{SPECIAL}'")
        (config / file).write_text(new, encoding="utf-8")
    plan = Plan(config, "demo")
    aggregate.run(
        AggregateStage.model_validate_json(plan.aggregate("main")), paper, Path("main.csv")
    )
    latex.run(
        LatexStage.model_validate_json(plan.latex("main")), Path("main.csv"), Path("main.tex")
    )


@pytest.mark.latex
def test_the_table_compiles_by_itself(with_special_characters):
    text = compiled("main.tex")
    assert "EPNet" in text
    assert "70.74" in text
    assert "not comparable" in " ".join(text.split())
    extracted = SPECIAL.replace("_", " ").replace("~", "˜").replace("^", "ˆ")
    assert " ".join(text.split()).count(extracted) == 3


@pytest.mark.latex
def test_the_table_compiles_within_a_paper(with_special_characters):
    Path("document.tex").write_text(DOCUMENT, encoding="utf-8")
    text = compiled("document.tex")
    assert "EPNet" in text
    assert "70.74" in text
    assert "See Table 1, before." in text
    assert "Words after." in text
