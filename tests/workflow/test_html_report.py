"""`--report`: one file with tables, figures and captions, read in a browser without a network."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from browser import Browser, program
from figure_files import lines_of
from PIL import Image

pytestmark = pytest.mark.workflow

CATEGORIES = ["Data", "Environment", "Figures", "Footprint", "Tables"]
CURVES = "curves-tiny-glyphs-conv4"
ALL = ("--cores", "2", "all")


@pytest.fixture(scope="module")
def reported(everything_once, tmp_path_factory):
    """Everything of a scale with the main table alone, and the report of it."""
    folder = tmp_path_factory.mktemp("reported") / "my project"
    shutil.copytree(everything_once[0].folder, folder)
    project = replace(everything_once[0], folder=folder)
    style = ("--report-stylesheet", "workflow/report/report.css")
    written = project.snakemake("all", "--report", "report.html", *style)
    assert written.code == 0, written.text
    return project, everything_once[1]


def test_all_draws_curves_and_plots_from_what_is_there_and_trains_nothing(reported):
    project, run = reported
    assert not {"pretrain", "finetune", "data"} & run.jobs.keys()
    analysis = {"two-moons", "decision-boundary", "interpolation"}
    drawn = {"alpha", "by-shot", "per-episode", CURVES, *analysis}
    assert (run.jobs["figure"], run.jobs["environment"]) == (len(drawn), 1)
    for name in drawn:
        made = (project.folder / f"results/tiny/figures/{name}.png").read_bytes()
        assert (project.folder / f"figures/{name}.png").read_bytes() == made
        assert (project.folder / f"figures/{name}.pdf").read_bytes().startswith(b"%PDF")
    assert project.snakemake(*ALL).nothing_to_do


def test_the_plot_has_the_numbers_of_the_table(reported):
    project, _ = reported
    table = {
        (line["row"], line["column"]): line
        for line in lines_of(project.folder / "results/tiny/tables/main.csv")
        if line["accuracy"]
    }
    drawn = lines_of(project.folder / "results/tiny/figures/by-shot.csv")
    assert len(drawn) == len(table) == 4
    for line in drawn:
        cell = table[line["series"], f"mini{line['x']}"]
        for name in ("accuracy", "interval", "difference", "paper_accuracy"):
            assert line[name] == cell[name] or float(line[name]) == float(cell[name])


# -- in a browser ----------------------------------------------------------------------------------


@pytest.fixture
def browser(tmp_path):
    if program() is None:
        pytest.skip("chromium is not installed: the report is not looked at")
    with Browser(tmp_path / "profile") as running:
        yield running


def is_drawn(path):
    """Whether a screenshot shows more than a few plain areas."""
    pixels = np.asarray(Image.open(path).convert("L"), dtype=float)
    return pixels.std() > 5 and len(np.unique(pixels)) > 50


def in_frame(browser, script):
    """The value of an expression of the document in the report's frame, which has its own origin.

    A page of the report is a data: address, so it is opened by itself.
    """
    source = browser.evaluate("document.querySelector('iframe').src")
    assert source.startswith("data:text/html")
    return browser.evaluate(
        f"(() => {{ const page = new DOMParser().parseFromString("
        f"new TextDecoder().decode(Uint8Array.from(atob({source.split(',', 1)[1]!r}), "
        f"c => c.charCodeAt(0))), 'text/html'); return {script}; }})()"
    )


def test_the_first_page_says_what_was_run_and_has_every_category(reported, browser, tmp_path):
    browser.open(reported[0].folder / "report.html")
    browser.until("document.querySelector('#app').innerText.includes('EPNet, reproduced')")
    text = browser.evaluate("document.querySelector('#app').innerText")
    for said in ("at scale tiny", "a test, 100 % of it", "not comparable", "tiny characters",
                 "Conv-4 ×1/8", "12 test episodes", "Total emissions are"):  # fmt: skip
        assert said in text
    shown = [line.strip() for line in text.splitlines()]
    assert [name for name in shown if name in CATEGORIES] == CATEGORIES
    browser.screenshot(tmp_path / "first.png")
    assert is_drawn(tmp_path / "first.png")
    assert browser.requests == []
    assert browser.errors == []


@pytest.mark.parametrize("width", [1300, 500])
def test_the_first_page_shows_the_main_table_at_any_width(reported, tmp_path, width):
    """The menu lies on none of it, and what is wider than the window is scrolled by itself."""
    if program() is None:
        pytest.skip("chromium is not installed: the report is not looked at")
    with Browser(tmp_path / "profile", width, 900) as browser:
        browser.open(reported[0].folder / "report.html")
        browser.until("document.querySelector('#app main tr.ours') !== null")
        cells = browser.evaluate(
            "[...document.querySelectorAll('#app main tr.ours td')].map(x => x.textContent)"
        )
        for line in lines_of(reported[0].folder / "results/tiny/tables/main.csv"):
            if line["accuracy"]:
                shown = f"{float(line['accuracy']):.2f} ±{float(line['interval']):.2f}"
                assert shown in cells
        # The graph is drawn late and moves the rest: all places are asked for at once, behind it.
        browser.until("document.querySelector('#app #rulegraph :is(svg, canvas)') !== null")
        inner, page, menu, title, graph = browser.evaluate(
            "[innerWidth, document.documentElement.scrollWidth, "
            "...['#app nav', '#app h1.title', '#rulegraph']"
            ".map(name => document.querySelector(name).getBoundingClientRect())"
            ".map(b => [b.left, b.top, b.right, b.bottom])]"
        )
        assert page <= inner
        assert menu[2] <= title[0] + 1 or menu[3] <= title[1] + 1
        assert title[2] <= inner
        assert graph[1] > title[3]
        assert browser.requests == []
        assert browser.errors == []


def test_the_table_is_seen_with_its_caption_and_our_numbers(reported, browser, tmp_path):
    browser.open(reported[0].folder / "report.html")
    browser.click("Tables")
    title = "Few-shot classification accuracy"
    browser.until(f"document.querySelector('#app').innerText.includes({title!r})")
    view(browser, "main")
    browser.until("document.querySelector('iframe') !== null")
    caption = in_frame(browser, "page.querySelector('caption').textContent")
    assert "a test, 100 % of it" in caption
    cells = in_frame(browser, "[...page.querySelectorAll('tr.ours td')].map(x => x.textContent)")
    for line in lines_of(reported[0].folder / "results/tiny/tables/main.csv"):
        if line["accuracy"]:
            shown = f"{float(line['accuracy']):.2f} ±{float(line['interval']):.2f}"
            assert shown in cells
    browser.screenshot(tmp_path / "table.png")
    assert is_drawn(tmp_path / "table.png")
    assert browser.requests == []


@pytest.mark.parametrize(
    ("category", "name", "said"),
    [
        ("Figures", "by-shot", "what the paper prints"),
        ("Figures", CURVES, "start from the epoch that was kept"),
        ("Data", "tiny-glyphs", "What networks are given"),
    ],
)
def test_a_picture_is_seen_from_its_upper_end_on_and_has_a_caption(
    reported, browser, tmp_path, category, name, said
):
    browser.open(reported[0].folder / "report.html")
    browser.click(category)
    browser.until(f"document.querySelector('#app').innerText.includes({name!r})")
    view(browser, name)
    browser.until("document.querySelector('#app .p-3 > img') !== null")
    picture = "document.querySelector('#app .p-3 > img')"
    browser.until(f"{picture}.complete && {picture}.naturalWidth > 300")
    box = f"(b => [b.top, b.right])({picture}.getBoundingClientRect())"
    top, right = browser.evaluate(box)
    assert 0 <= top < 900
    assert right <= 1400
    browser.screenshot(tmp_path / "picture.png")
    assert is_drawn(tmp_path / "picture.png")
    captions = browser.evaluate("Object.values(results).map(x => x.caption).join(' ')")
    assert said in captions
    assert browser.requests == []
    assert browser.errors == []


def view(browser, name):
    """Presses the eye of the result that a row of the list names."""
    row = (
        "[...document.querySelectorAll('#app tbody tr')]"
        f".find(x => [...x.cells].some(cell => cell.textContent.trim() === {name!r}))"
    )
    browser.until(f"{row} !== undefined")
    browser.evaluate(f"{row}.querySelector('a').click()")
