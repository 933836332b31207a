"""Training curves: every epoch as the training wrote it, and the epoch that was kept."""

import csv
import json
from collections import Counter
from contextlib import contextmanager
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from figure_files import draw_in_another_process, fonts_of, lines_of, same_files, words_of
from matplotlib.transforms import Bbox

from epcore.plan import Plan
from epcore.report import curves
from epcore.report.figure import facets
from epcore.training.loop import Outcome

CONFIG = Path(__file__).parents[2] / "config"
NAME = "curves-glyph-mini-resnet12"  # epnet and net fine-tuned, two of the propagator are not
EPOCHS = {"pretrain": 4, "finetune-1shot": 2, "finetune-5shot": 3}
IMAGENET_FS = "curves-glyph-large-resnet10"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stage(folder):
    return trained(NAME)


def trained(name):
    """The trainings of a figure, with curves as the training loop writes them."""
    stage = Plan(CONFIG, "demo").curves.stages[name]
    for number, training in enumerate(stage.trainings):
        path = Path(training.checkpoint)
        facts_file = path.with_suffix(".meta.json")
        rows = [
            {
                "epoch": epoch,
                "learning_rate": 0.1 / (epoch + 1),
                "train_loss": 5 - epoch / 3,
                "val_accuracy": 0.2 + number / 100 + epoch / 10,
                "val_loss": 1.5 - epoch / 10,
            }
            for epoch in range(EPOCHS.get(path.stem, 3))
        ]
        rows[-1]["val_accuracy"] -= 0.15  # so the last but one is the best
        Outcome({}, rows[-2], rows, None).write_curve(curve_of(training))
        best = rows[-2]
        if name == IMAGENET_FS:  # its checkpoints have one for each of their models
            known = json.loads(facts_file.read_text())["best"] if facts_file.exists() else {}
            best = known | {training.model: best}
        facts = {"best": best, "seconds": 1, "made": {}}
        facts_file.write_text(json.dumps(facts), encoding="utf-8")
    return stage


def curve_of(training):
    path = Path(training.checkpoint)
    return path.with_name(f"{path.stem}{training.model}.csv")


@pytest.mark.slow
@pytest.mark.parametrize("name", [NAME, IMAGENET_FS])
def test_the_numbers_are_those_of_the_trainings_in_order_and_are_named_in_text(folder, name):
    stage = trained(name)
    curves.run(stage, Path("figures/c.pdf"))
    lines = lines_of(Path("figures/c.csv"))
    words = words_of("figures/c.pdf")
    check_words(words, name)
    for line in lines:
        if line["kept"] == "True":
            assert f"{float(line['val_accuracy']):.1f}" in words
    assert all(
        kind.endswith("TrueType") and emb == "yes" for kind, emb in fonts_of("figures/c.pdf")
    )
    assert len(lines) == sum(EPOCHS.get(Path(t.checkpoint).stem, 3) for t in stage.trainings)
    for training in stage.trainings:
        with curve_of(training).open(newline="") as file:
            written = list(csv.DictReader(file))
        drawn, lines = lines[: len(written)], lines[len(written) :]
        for epoch, (line, row) in enumerate(zip(drawn, written, strict=True)):
            assert (line["recipe"], line["phase"]) == (training.recipe, training.phase)
            assert int(line["epoch"]) == int(row["epoch"]) + 1
            assert float(line["val_accuracy"]) == pytest.approx(100 * float(row["val_accuracy"]))
            for name in ("learning_rate", "train_loss", "val_loss"):
                assert float(line[name]) == pytest.approx(float(row[name]))
            assert line["kept"] == str(epoch == len(written) - 2)


def check_words(words, name):
    """Every recipe and phase is named."""
    if name == IMAGENET_FS:
        numbers = [f"generator, K = {shots}" for shots in (1, 2, 5, 10, 20)]
        recipes = ("classifier", "lwof-average", "lwof-attention", "wdae-gnn-ep", *numbers)
        note = "ResNet-10 ×1/4"
        assert "fine-tuning" not in words
    else:
        recipes = ("epnet", "net", "off-diagonal", "diagonal")
        recipes += ("pretraining", "fine-tuning, 1-shot", "learning rate")
        note = "Scale demo: rendered characters of 100 classes, ResNet-12 ×1/8"
    for said in (*recipes, note):
        assert said in words


@pytest.fixture
def drawn(monkeypatch):
    """Canvases and panels of the figures that are drawn."""
    kept = []
    monkeypatch.setattr("matplotlib.pyplot.savefig", lambda path, **_: Path(path).touch())

    @contextmanager
    def keep(*sizes, **more):
        with facets(*sizes, **more) as grid:
            yield grid
            kept.append((grid.figure, grid.axes))

    monkeypatch.setattr(curves, "facets", keep)
    return kept


@pytest.mark.slow
def test_a_full_figure_fits_on_a_page_of_the_paper(folder, drawn):
    """The text of Springer's llncs class is 193 mm high; a caption goes below."""
    full = trained("curves-glyph-mini-conv4")
    assert len({training.recipe for training in full.trainings}) == 6
    curves.run(full, Path("c.pdf"))
    ((canvas, panels),) = drawn
    assert len(panels) == 6  # a row for each recipe, also where it shares its pretraining
    assert canvas.get_figheight() < 193 / 25.4 - 0.5


@pytest.mark.slow
def test_five_accuracies_stand_side_by_side(folder, drawn):
    stage = trained(IMAGENET_FS)
    curves.run(stage, Path("c.pdf"))
    ((canvas, axes),) = drawn
    canvas.draw_without_rendering()
    numbers = Counter(training.recipe for training in stage.trainings)  # a row of panels for each
    assert numbers["lwof-attention"] == 5
    for panel, number in zip(axes[:, 1], numbers.values(), strict=True):
        labels = [text.get_window_extent() for text in panel.texts]
        assert len(labels) == number
        assert not any(one.overlaps(other) for one, other in combinations(labels, 2))
        assert min(label.x0 for label in labels) > panel.get_window_extent().x0


def test_no_accuracy_covers_a_star_or_another(stage, drawn):
    """Fine-tunings keep their last epoch, whose accuracy is among those of pretraining."""
    for path in Path().rglob("finetune-*shot.csv"):
        rows = [{name: float(text) for name, text in line.items()} for line in lines_of(path)]
        rows[-1]["val_accuracy"] = 0.4
        Outcome({}, rows[-1], rows, None).write_curve(path)
        facts = {"best": rows[-1], "seconds": 1, "made": {}}
        path.with_suffix(".meta.json").write_text(json.dumps(facts), encoding="utf-8")
    curves.run(stage, Path("c.pdf"))
    ((canvas, axes),) = drawn
    canvas.draw_without_rendering()
    for panel in axes[:, 1]:
        labels = [text.get_window_extent() for text in panel.texts]
        (drawn_stars,) = panel.collections
        half = np.sqrt(drawn_stars.get_sizes()[0]) / 2 * canvas.dpi / 72
        middles = panel.transData.transform(drawn_stars.get_offsets())
        stars = [Bbox([middle - half, middle + half]) for middle in middles]
        assert len(stars) == len(labels) > 0
        assert not any(one.overlaps(other) for one, other in combinations(labels, 2))
        assert not any(star.overlaps(label) for star, label in product(stars, labels))


def test_a_recipe_that_goes_on_from_anothers_pretraining_says_so(stage):
    shared = [t.model_copy(update={"recipe": "lp"}) for t in stage.trainings[:2]]
    curves.run(stage.model_copy(update={"trainings": tuple(shared)}), Path("c.pdf"))
    words = words_of("c.pdf")
    assert "pretraining of" in words
    assert {line["trained_as"] for line in lines_of(Path("c.csv"))} == {"epnet"}
    assert {line["recipe"] for line in lines_of(Path("c.csv"))} == {"lp"}


@pytest.mark.slow
def test_curves_are_the_same_bytes_in_another_process_and_say_what_they_are_made_of(stage):
    curves.run(stage, Path("one.pdf"))
    draw_in_another_process("curves", stage, "two.pdf")
    same_files("one", "two")
    facts = json.loads(Path("one.meta.json").read_text(encoding="utf-8"))
    assert len(facts["inputs"]) == 2 * len(stage.trainings)
