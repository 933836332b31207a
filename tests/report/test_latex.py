"""Typeset tables: every number in its place, and it compiles wherever it stands."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from figure_files import compiled, overfull
from plans import DELETED, plan_of, put
from scipy import stats

from epcore.plan import Plan
from epcore.report.table import run

CONFIG = Path(__file__).parents[2] / "config"
COLUMNS = ["mini1", "mini5", "tier1", "tier5"]
NOT_COMPARABLE = "its numbers are not comparable with the paper's"


@pytest.fixture
def written(table_stage, scores, paper):
    """The table of fabricated scores, as text."""
    run(table_stage, [paper], Path("main.csv"))
    return Path("main.tex").read_text(encoding="utf-8")


def lines_of(text):
    """The lines of the table that hold numbers, split at their &."""
    lines = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines()]
    return [line for line in lines if len(line) == 10 and line[0] != "&" and line[0] != ""]


def rows_of(text):
    """Those that are rows of the table, without the differences below them."""
    return [line for line in lines_of(text) if not line[0].startswith(r"\quad")]


def entries_of(text, stage):
    """(block, row, column) -> what stands under this run and under paper."""
    places = [(block.name, row.name) for block in stage.table.blocks for row in block.rows]
    found = {}
    for (block, row), line in zip(places, rows_of(text), strict=True):
        for number, column in enumerate(COLUMNS):
            found[block, row, column] = line[2 + 2 * number], line[3 + 2 * number]
    return found


def test_every_printed_number_stands_in_its_cell_and_gray_if_at_224_pixels(
    written, table_stage, paper
):
    entries = entries_of(written, table_stage)
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


def test_our_numbers_have_two_decimals_and_their_interval(written, table_stage, scores):
    for place, (shown, _) in entries_of(written, table_stage).items():
        if place not in scores:
            assert shown == "--"
            continue
        percent = 100 * scores[place]
        low, high = stats.t.interval(0.95, 39, loc=percent.mean(), scale=stats.sem(percent))
        printed = re.fullmatch(r"(\d\d\.\d\d)\\ci\{(\d\.\d\d)\}", shown)
        assert float(printed[1]) == pytest.approx(percent.mean(), abs=0.0051)
        assert float(printed[2]) == pytest.approx((high - low) / 2, abs=0.0051)


def test_a_row_below_its_baseline_has_the_paired_difference_and_the_printed_one(
    written, table_stage, scores, paper
):
    with paper.open(newline="", encoding="utf-8") as file:
        printed = {(c["block"], c["row"], c["column"]): c["accuracy"] for c in csv.DictReader(file)}
    lines = [line for line in lines_of(written) if line[0] == r"\quad\emph{difference}"]
    for block, line in zip(table_stage.table.blocks, lines, strict=True):
        assert line[1] == ""
        for number, column in enumerate(COLUMNS):
            ours, theirs = line[2 + 2 * number], line[3 + 2 * number]
            epnet, net = ((block.name, row, column) for row in ("EPNet", "--Net"))
            paired = 100 * (scores[epnet] - scores[net])
            low, high = stats.t.interval(0.95, 39, loc=paired.mean(), scale=stats.sem(paired))
            found = re.fullmatch(r"\$([+-]\d+\.\d\d)\$\\ci\{(\d+\.\d\d)\}", ours)
            assert float(found[1]) == pytest.approx(paired.mean(), abs=0.0051)
            assert float(found[2]) == pytest.approx((high - low) / 2, abs=0.0051)
            assert theirs == f"${float(printed[epnet]) - float(printed[net]):+.2f}$"
    assert r"\emph{Difference}: to the row above" in written


def test_rows_are_labeled_and_count_parameters_as_we_and_as_the_paper_do(written, table_stage):
    labels = [(line[0], line[1]) for line in rows_of(written)]
    net = next(c for c in table_stage.cells if (c.block, c.row) == ("CONV-4", "--Net"))
    facts = json.loads(Path(net.checkpoint_meta).read_text(encoding="utf-8"))
    assert ("-{}-Net", f"{facts['parameters'] / 1000:.0f}K (112K)") in labels
    assert sum(label == "EPNet" for label, _ in labels) == len(table_stage.table.blocks)
    assert any(label.startswith("GNN") and count == "1619K" for label, count in labels)


def test_a_row_of_ours_without_printed_parameters_has_ours_alone(typeset, config):
    path = config / "tables" / "main.yaml"
    line = '{name: "--Net", parameters: 112K, recipe'
    text = path.read_text(encoding="utf-8")
    assert line in text
    path.write_text(text.replace(line, line.replace("parameters: 112K, ", "")), encoding="utf-8")
    rows = body(typeset("main", config=config)[0])
    assert re.fullmatch(r"\d+K", next(row[1] for row in rows if row[0] == "-{}-Net"))


def test_parameters_are_shown_even_if_the_first_column_is_not_of_this_scale(
    table_stage, scores, paper
):
    later = [cell for cell in table_stage.cells if cell.column.startswith("tier")]
    stage = table_stage.model_copy(update={"cells": tuple(later)})
    run(stage, [paper], Path("main.csv"))
    epnet = [line for line in rows_of(Path("main.tex").read_text()) if line[0] == "EPNet"]
    assert epnet[0][1].endswith("K (112K)")


def test_every_source_of_the_literature_is_listed_once_below_the_table(written, table_stage):
    below = written[written.index(r"\end{tabular}") :]
    sources = [row.source for block in table_stage.table.blocks for row in block.rows]
    assert len({*sources}) > 15
    for source, line in zip(sources, rows_of(written), strict=True):
        number = re.search(r"\\textsuperscript\{\d+\}$", line[0])
        assert bool(number) == bool(source)
        if number:  # one paper, one number
            assert below.count(f"}}{source}") == below.count(f"{number[0]}{source}") == 1


def caption(config, scale):
    return Plan(config, scale).tables.stage("main").caption


def test_the_caption_says_what_this_run_is_and_that_it_is_not_comparable(written):
    note = "Scale demo: narrowed networks and few epochs on images of 28x28 pixels"
    assert note in written
    assert NOT_COMPARABLE in written
    assert "rendered characters of 100 classes" in written
    assert "over 1000 test episodes" in written


def test_the_caption_says_that_shared_images_are_left_out(tmp_path):
    assert "share" not in caption(CONFIG, "small")
    config = tmp_path / "config"
    shutil.copytree(CONFIG, config)
    path = config / "datasets.yaml"
    text = path.read_text(encoding="utf-8")
    own = "    title: CIFAR-FS\n"
    path.write_text(text.replace(own, own + "    shared_images: leave-out\n"), encoding="utf-8")
    said = caption(config, "small")
    assert ": CIFAR-FS (images that splits share left out of base and val, " in said
    assert ": FC100. " in said


def test_only_a_comparable_scale_goes_without_the_warning():
    assert NOT_COMPARABLE not in caption(CONFIG, "paper")
    for scale in ("demo", "small", "grocery"):
        assert NOT_COMPARABLE in caption(CONFIG, scale)


def test_a_narrowed_network_is_marked_as_such(written):
    assert r"ResNet-12 $\times$1/8" in written
    assert r"WRN-28-10 $\times$1/5, depth $\times$1/4" in written
    assert r"{Conv-4} \\" in written


# -- tables of another kind ------------------------------------------------------------------------

# A table of each kind.
TABLES = [
    "main", "ablation", "placement", "discrepancies", "classifiers", "compared-gaps", "imagenetfs",
    "batch-epochs", "n-way",
]  # fmt: skip
SCALE_OF = {"batch-epochs": "batch-epochs"}  # the demo has no cells of it


def body(text):
    """The lines between \\toprule and \\bottomrule that have cells, split at their &."""
    inner = text.split(r"\toprule", 1)[1].split(r"\bottomrule", 1)[0]
    lines = [line.removesuffix(r" \\") for line in inner.splitlines() if "&" in line]
    return [[cell.strip() for cell in line.split("&")] for line in lines]


def mean_of(shown):
    """The mean and the half width of an entry."""
    found = re.fullmatch(r"\$?([-+]?\d+\.\d\d)\$?\\ci\{(\d+\.\d\d)\}", shown)
    return float(found[1]), float(found[2])


@pytest.mark.slow
def test_a_table_of_many_blocks_goes_on_from_page_to_page(typeset):
    """Every row once, under one label and number, no page with more rows than it has room for."""
    whole, _ = typeset("classifiers", "paper")
    pages = whole.split(r"\begin{table}")[1:]
    blocks = plan_of("paper").tables.table("classifiers").blocks
    rows = [sum(r"\ci{" in line for line in page.splitlines()) for page in pages]
    assert sum(rows) == sum(len(block.rows) for block in blocks)
    assert max(rows) <= 64 < sum(rows)
    later = [1] * len(pages[1:])
    assert [page.count(r"\label{") for page in pages] == [1, *(0 for _ in later)]
    assert [page.count(r"\addtocounter{table}{-1}") for page in pages] == [0, *later]
    assert typeset("classifiers", "demo")[0].count(r"\begin{table}") == 1


def test_marks_are_columns_of_their_own_with_a_tick_where_they_are_on(typeset):
    text, scores = typeset("ablation")
    top, heading, kind, *rows = body(text)
    assert heading == ["Exp.", "EFT", "ROT", "LP", "EP", r"\multicolumn{2}{c}{1-shot}"]
    assert len(top) == 6
    assert kind[5:] == [r"\emph{this run}", r"\emph{paper}"]
    assert [row[0] for row in rows] == [str(number) for number in range(1, 17)]
    for number, row in enumerate(rows):
        ticked = [bool(number & bit) for bit in (8, 4, 2, 1)]
        assert row[1:5] == [r"$\checkmark$" if tick else "" for tick in ticked]
        mean, _ = mean_of(row[5])
        expected = 100 * scores["CONV-4", f"exp{number + 1}", "mini1"].mean()
        assert mean == pytest.approx(expected, abs=0.0051)
    assert [row[6] for row in (rows[0], rows[15])] == ["49.57", "58.85"]


@pytest.mark.parametrize(("name", "lead"), [("placement", 4), ("discrepancies", 1)])
def test_a_table_without_the_papers_numbers_has_differences_beside_its_own(typeset, name, lead):
    text, scores = typeset(name)
    table = plan_of("demo").tables.table(name)
    # The demo flips nothing anyway.
    same_runs = ["text-augmentation"] if name == "discrepancies" else []
    assert ("is, at this scale, the run that it is compared with" in text) == bool(same_runs)
    _, heading, kind, *rows = body(text)
    assert len(heading) == lead + 2
    assert kind[lead:] == [r"\emph{this run}", r"\emph{difference}"] * 2
    places = [(block.name, row) for block in table.blocks for row in block.rows]
    signs = set()
    for (block, row), line in zip(places, rows, strict=True):
        for number, column in enumerate(("mini1", "mini5")):
            mean, difference = line[lead + 2 * number : lead + 2 * number + 2]
            ours = 100 * scores[block, row.name, column]
            assert mean_of(mean)[0] == pytest.approx(ours.mean(), abs=0.0051)
            if row.baseline is None or row.recipe in same_runs:
                assert difference == ""
                continue
            pairs = stats.ttest_rel(ours, 100 * scores[block, row.baseline, column])
            low, high = pairs.confidence_interval(0.95)
            gap, half = mean_of(difference)
            assert gap == pytest.approx((low + high) / 2, abs=0.0051)
            assert half == pytest.approx((high - low) / 2, abs=0.0051)
            signs.add(difference[:2])
    assert signs == {"$+", "$-"}


def test_a_block_without_a_backbone_is_headed_by_its_name(typeset):
    text, _ = typeset("cub")
    assert r"\multicolumn{5}{c}{RESNET-18} \\" in text
    assert r"\multicolumn{5}{c}{ResNet-12 $\times$1/8} \\" in text
    robust = next(row for row in body(text) if row[0].startswith("Robust-20++"))
    assert robust[1:] == [
        "--", r"\textcolor{gray}{68.68\ci{0.69}}", "--", r"\textcolor{gray}{83.21\ci{0.44}}",
    ]  # fmt: skip


def test_a_block_may_say_more_than_its_backbone(typeset):
    text, _ = typeset("discrepancies")
    assert r"{Conv-4} \\" in text
    assert r"{Conv-4, semi-supervised (EPNet-SSL)} \\" in text


def test_a_table_says_over_how_many_episodes_it_is(typeset):
    assert "over 600 test episodes" in typeset("n-way")[0]
    assert "over 1000 test episodes" in typeset("ten-shot")[0]


# -- compiled --------------------------------------------------------------------------------------

SPECIAL = r"50 % & #1_{x} $ ~ ^ \ <>|"
DOCUMENT = r"""\documentclass{article}
\usepackage{booktabs,xcolor,graphicx}
\begin{document}
See Table~\ref{tab:main}, before.
\input{main}
Words after.
\end{document}
"""


@pytest.fixture
def with_special_characters(config, fabricate, paper):
    """The table of a config whose plain texts hold every special character."""
    for file, old in (
        ("scales/demo.yaml", "Scale demo: narrowed"),
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
    put(config, "scales/demo.yaml", "parts/main", DELETED)  # both data sets
    stage = Plan(config, "demo").tables.stage("main")
    fabricate(stage.cells)
    run(stage, [paper], Path("main.csv"))


@pytest.mark.latex
def test_the_table_compiles_by_itself(with_special_characters):
    text = compiled("main.tex")
    assert "EPNet" in text
    assert "70.74" in text
    assert "not comparable" in " ".join(text.split())
    extracted = SPECIAL.replace("_", " ").replace("~", "˜").replace("^", "ˆ")
    assert " ".join(text.split()).count(extracted) == 3


@pytest.mark.latex
def test_letters_that_pdflatex_has_no_font_for_are_question_marks(config, fabricate, paper):
    text = (config / "datasets.yaml").read_text(encoding="utf-8")
    named = text.replace("rendered characters of 100 classes", "我的照片 Жук café")
    (config / "datasets.yaml").write_text(named, encoding="utf-8")
    stage = Plan(config, "demo").tables.stage("main")
    fabricate(stage.cells)
    run(stage, [paper], Path("main.csv"))
    assert "我的照片" in Path("main.tex").read_text(encoding="utf-8")
    words = " ".join(compiled("main.tex").split())
    assert "???? ??? caf" in words, words[:600]


@pytest.mark.latex
def test_the_table_compiles_within_a_paper_and_is_no_wider_than_its_text(with_special_characters):
    Path("document.tex").write_text(DOCUMENT, encoding="utf-8")
    text = compiled("document.tex")
    assert max(overfull("document.log"), default=0) <= 10
    assert "EPNet" in text
    assert "70.74" in text
    assert "See Table 1, before." in text
    assert "Words after." in text


@pytest.mark.latex
@pytest.mark.parametrize("name", TABLES)
def test_every_table_compiles_and_is_no_wider_than_the_page(typeset, name):
    _, scores = typeset(name, SCALE_OF.get(name, "demo"), seeds=1)
    text = compiled(f"{name}.tex")
    assert "Table 1:" in text
    assert f"{100 * next(iter(scores.values())).mean():.2f}" in text
    assert max(overfull(f"{name}.log"), default=0) <= 10
    assert "Float too large" not in Path(f"{name}.log").read_text(errors="replace")


def test_differences_within_the_noise_of_trainings_are_marked_and_the_caption_says_so(typeset):
    marked, _ = typeset("batch-epochs", "batch-epochs")
    with Path("batch-epochs.csv").open(newline="", encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if line["baseline"]]
    noisy = [abs(float(line["difference"])) <= float(line["difference_interval"]) for line in lines]
    assert {True, False} == set(noisy)
    for line, within in zip(lines, noisy, strict=True):
        shown = (
            rf"${float(line['difference']):+.2f}$\ci{{{float(line['difference_interval']):.2f}}}"
        )
        assert shown + (r"$^\circ$" if within else "") in marked
        assert (shown + r"$^\circ$" in marked) == within
    caption = re.search(r"\\caption\{(.*)\}", marked)[1]
    assert "3 trainings (seeds 0, 1, 2)" in caption
    assert r"$^\circ$No difference beyond that of trainings" in caption
    assert "°" in Path("batch-epochs.html").read_text(encoding="utf-8")


def test_of_one_training_nothing_is_marked(typeset):
    text, _ = typeset("batch-epochs", "batch-epochs", seeds=(7,))
    assert r"\circ" not in text
    assert "over trainings" not in text
