"""Training curves: every epoch as the training wrote it, and the epoch that was kept."""

import csv
import json
from pathlib import Path

import pytest
from figure_files import lines_of, words_of
from plans import plan_of

from epcore.report import curves
from epcore.training.loop import Outcome

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
    stage = plan_of("demo").curves.stages[name]
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


def test_a_recipe_that_goes_on_from_anothers_pretraining_says_so(stage):
    shared = [t.model_copy(update={"recipe": "lp"}) for t in stage.trainings[:2]]
    curves.run(stage.model_copy(update={"trainings": tuple(shared)}), Path("c.pdf"))
    words = words_of("c.pdf")
    assert "pretraining of" in words
    assert {line["trained_as"] for line in lines_of(Path("c.csv"))} == {"epnet"}
    assert {line["recipe"] for line in lines_of(Path("c.csv"))} == {"lp"}
