"""A recipe that is chosen from candidates, for real: two pretrainings, then three fine-tunings."""

import json
import shutil
from dataclasses import replace

import pytest
from figure_files import lines_of

pytestmark = pytest.mark.workflow

MODELS = "results/tiny/models/tiny-glyphs/conv4"
SCORES = "results/tiny/scores/tiny-glyphs/conv4/epnet-selected/s0/5way-1shot.csv"
EXTRA = """\
candidates:
      pretraining:
        lr-01: {learning_rate: 0.01}
        lr-02: {learning_rate: 0.02}
      finetuning:
        slow: {learning_rate: 0.001}
        fast: {learning_rate: 0.01}
        heavy: {class_weight: 0.5}
  net-selected:"""


@pytest.fixture(scope="module")
def chosen_once(finished_once, tmp_path_factory):
    """The finished project with a grid of five, and the scores of what it chose."""
    finished = replace(finished_once[0], folder=tmp_path_factory.mktemp("chosen") / "my project")
    shutil.copytree(finished_once[0].folder, finished.folder)
    finished.replace("config/footprint.yaml", "tracking: true", "tracking: false")  # for time
    path = finished.folder / "config/recipes.yaml"
    head, rest = path.read_text(encoding="utf-8").split("candidates:\n      pretraining:", 1)
    path.write_text(head + EXTRA + rest.split("net-selected:", 1)[1], encoding="utf-8")
    run = finished.snakemake("--cores", "2", SCORES)
    assert run.code == 0, run.text
    return finished, run


@pytest.fixture
def chosen(chosen_once, tmp_path):
    """A copy, times of files included, that a test may change."""
    shutil.copytree(chosen_once[0].folder, tmp_path / "my project")
    return replace(chosen_once[0], folder=tmp_path / "my project")


def meta(project, name):
    return json.loads((project.folder / MODELS / f"{name}.meta.json").read_text(encoding="utf-8"))


def test_the_chosen_checkpoint_is_the_best_of_its_candidates_and_is_what_is_tested(
    chosen_once,
):
    project, run = chosen_once
    # The first pretraining is epnet's own, which is there.
    assert (run.jobs["pretrain"], run.jobs["finetune"]) == (1, 3)
    assert (run.jobs["select_pretrained"], run.jobs["select_finetuned"]) == (1, 1)
    owners = {
        "pretrain": {"epnet-selected-lr-01": "epnet", "epnet-selected-lr-02": None},
        "finetune-1shot": dict.fromkeys(f"epnet-selected-{n}" for n in ("slow", "fast", "heavy")),
    }
    for checkpoint, named in owners.items():
        facts = meta(project, f"epnet-selected/s0/{checkpoint}")
        accuracies = {}
        for candidate, owner in named.items():
            file = project.folder / MODELS / (owner or candidate) / "s0" / f"{checkpoint}.csv"
            accuracies[candidate] = max(float(row["val_accuracy"]) for row in lines_of(file))
        assert facts["val_accuracies"] == pytest.approx(accuracies, abs=1e-6)
        assert facts["chosen"] == max(accuracies, key=accuracies.get)
        folder = named[facts["chosen"]] or facts["chosen"]
        made = project.folder / MODELS / "epnet-selected/s0" / f"{checkpoint}.pt"
        best = project.folder / MODELS / folder / "s0" / f"{checkpoint}.pt"
        assert made.read_bytes() == best.read_bytes()
    tuned = meta(project, "epnet-selected-fast/s0/finetune-1shot")["inputs"]
    assert f"{MODELS}/epnet-selected/s0/pretrain.pt" in tuned
    assert len((project.folder / SCORES).read_text().splitlines()) == 1 + 12
    assert not list((project.folder / MODELS).rglob("*.state"))
    assert project.snakemake("--cores", "2", SCORES).nothing_to_do


def test_another_candidate_trains_itself_alone_and_is_chosen_from_again(chosen):
    chosen.replace("config/recipes.yaml", "heavy: {class_weight: 0.5}", "heavy: {class_weight: 1}")
    jobs = chosen.snakemake("-n", SCORES).jobs
    assert jobs == {"finetune": 1, "select_finetuned": 1, "embed": 1, "evaluate": 1}


def test_a_candidate_that_is_left_out_is_not_chosen_and_trains_nothing(chosen):
    chosen.replace("config/recipes.yaml", "        heavy: {class_weight: 0.5}\n", "")
    jobs = chosen.snakemake("-n", SCORES).jobs
    assert jobs == {"select_finetuned": 1, "embed": 1, "evaluate": 1}
