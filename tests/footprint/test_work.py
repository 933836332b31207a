"""How much a job computes, before its data are there."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.flop_counter import FlopCounterMode

from epcore.data.builders.glyph_classes import SELECTIONS
from epcore.footprint.amount import Work
from epcore.footprint.estimate import quick_datasets
from epcore.footprint.sizes import GLYPHS, SPLITS, size_of
from epcore.footprint.work import epochs, work_of
from epcore.imagenet_fs.build import build_generator
from epcore.imagenet_fs.cosine import cosine_logits
from epcore.imagenet_fs.generators import Task
from epcore.plan import Plan
from epcore.plan.jobs import Jobs
from epcore.plan.models import Pretraining
from epcore.plan.network import effort

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture
def demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Plan(CONFIG, "demo")


def lasted(settings, accuracies):
    """Epochs of a training whose validation accuracies are these, by torch's own scheduler."""
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=settings.learning_rate)
    plateau = settings.plateau
    scheduler = ReduceLROnPlateau(
        optimiser, mode="max", factor=plateau.factor, patience=plateau.patience
    )
    for epoch in range(settings.epochs):
        if optimiser.param_groups[0]["lr"] <= settings.learning_rate * settings.stop_ratio:
            return epoch
        scheduler.step(accuracies[epoch])
    return settings.epochs


@pytest.mark.parametrize("patience", [0, 1, 4, 10])
@pytest.mark.parametrize("rate", [0.1, 0.05, 0.001])
def test_a_training_that_never_gains_lasts_as_long_as_is_said(demo, patience, rate):
    base = demo.recipe("epnet", "conv4").pretraining.model_dump()
    base |= {"epochs": 200, "learning_rate": rate, "schedule": "plateau"}
    settings = Pretraining(**base | {"plateau": base["plateau"] | {"patience": patience}})
    assert epochs(settings, early=True) == lasted(settings, [0.2] * 200)
    assert epochs(settings, early=False) == lasted(settings, np.linspace(0, 1, 200)) == 200
    short = settings.model_copy(update={"epochs": 3})
    assert epochs(short, early=True) == 3


def test_drawn_data_sets_have_as_many_classes_as_their_builder_draws():
    assert GLYPHS.keys() == SELECTIONS.keys()
    for name, selection in SELECTIONS.items():
        drawn = Counter()
        for draw in selection.draws:
            drawn[draw.split] += draw.count
        assert tuple(drawn[split] for split in SPLITS) == GLYPHS[name]


def test_sizes_come_from_the_store_else_from_the_config_else_from_a_guess(demo):
    assert size_of(demo, "glyph-mini", 9).images == {"base": 3840, "val": 640, "novel": 2600}
    assert size_of(demo, "mini-imagenet", 9).images == {"base": 38400, "val": 9600, "novel": 12000}
    assert size_of(demo, "cifar-fs", 9).pixels == 32
    whole = size_of(demo, "imagenet-fs-by-name", 9)
    assert (whole.guessed, whole.total) == (False, pytest.approx(1_281_167))
    own = Plan(CONFIG, "grocery")
    guessed = size_of(own, "grocery81", 10)
    assert guessed.guessed
    assert guessed.images == {"base": 640, "val": 160, "novel": 200}
    store = Path("results/grocery/data/grocery81/store.json")
    store.parent.mkdir(parents=True)
    splits = ["base"] * 3 + ["val"] + ["novel"]
    facts = {"classes": [{"split": split} for split in splits], "shape": [500, 256, 256, 3]}
    store.write_text(json.dumps(facts))
    built = size_of(own, "grocery81", 10)
    assert not built.guessed
    assert built.images == {"base": 300, "val": 100, "novel": 100}


def test_quick_data_sets_are_those_whose_published_size_is_small_built_or_not(demo):
    """Else `--forcerun data` would miss own pictures once they are packed."""
    own = Plan(CONFIG, "grocery")
    quick = quick_datasets(own)
    assert {"cub", "glyph-mini"} <= set(quick)
    assert not {"grocery81", "mini-imagenet", "tiered-imagenet", "omniglot"} & set(quick)
    store = Path("results/grocery/data/grocery81/store.json")
    store.parent.mkdir(parents=True)
    facts = {"classes": [{"split": "base"}], "shape": [50, 84, 84, 3]}
    store.write_text(json.dumps(facts))
    assert quick_datasets(own) == quick


def job(plan, rule, path):
    (found,) = [job for job in Jobs(plan).of(path) if job.rule == rule]
    return found


def sizes(plan):
    return {name: size_of(plan, name, 100) for name in plan.datasets}


def test_pretraining_counts_rotations_backward_passes_and_validation(demo):
    """By hand: epochs of 240 batches of 16 images in 4 rotations, and 640 val images."""
    settings = demo.recipe("epnet", "conv4").pretraining
    epochs = settings.epochs
    assert settings.batch_size == 16
    path = "results/demo/models/glyph-mini/conv4/epnet/s0/pretrain.pt"
    work = work_of(demo, job(demo, "pretrain", path), sizes(demo), early=False)
    one = effort(demo.backbone("conv4"), 28)
    trained, drawn = epochs * 240 * 16 * 4, 200 * 5 * 20
    touched = 640 * (1 - (1 - 1 / 640) ** drawn)
    expected = 3 * trained + epochs * touched
    assert work.multiply_adds / one.multiply_adds == pytest.approx(expected, 1e-3)
    assert work.values / one.values == pytest.approx(expected, 1e-3)
    solved = 3 * epochs * 240 * 64**2 + epochs * 200 * 100**2
    assert work.pairs == pytest.approx(solved)


def test_pretraining_without_rotated_copies_counts_every_image_once(demo):
    path = "results/demo/models/omniglot/conv4/epnet/s0/pretrain.pt"
    asked = job(demo, "pretrain", path)
    work = work_of(demo, asked, sizes(demo), early=False)
    steps, one = 82240 // 16, effort(demo.backbone("conv4"), 28)
    epochs = demo.recipe("epnet", "conv4").pretraining.epochs
    drawn = 200 * 5 * 20
    touched = 13760 * (1 - (1 - 1 / 13760) ** drawn)
    expected = epochs * (3 * steps * 16 + touched)
    assert work.multiply_adds / one.multiply_adds == pytest.approx(expected, 1e-3)
    assert work.pairs == pytest.approx(epochs * (3 * steps * 16**2 + 200 * 100**2))


def test_embedding_counts_the_images_that_random_episodes_touch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = Plan(CONFIG, "paper")
    path = "results/paper/features/tiered-imagenet/conv4/net/s0/finetune-1shot.npz"
    embedding = job(plan, "embed", path)
    work = work_of(plan, embedding, sizes(plan), early=True)
    random, touched = np.random.default_rng(0), set()
    for name in plan.tested_protocols("tiered-imagenet", "conv4", "net", "finetune-1shot"):
        asked = plan.protocols[name]
        count = min(1000, asked.episodes or 1000)
        images = asked.way * (asked.shot + asked.queries + asked.unlabeled)
        for _ in range(count):
            touched.update(random.choice(206_209, images, replace=False).tolist())
    one = effort(plan.backbone("conv4"), 84)
    assert work.multiply_adds / one.multiply_adds == pytest.approx(len(touched), rel=0.02)
    assert work.disk == pytest.approx(4 * 64 * len(touched), rel=0.02)


def test_stage_1_of_imagenet_fs_counts_its_schedule_and_features_every_image(tmp_path, monkeypatch):
    """160 million images of 224 pixels, forward and backward; each image and query 512 floats."""
    monkeypatch.chdir(tmp_path)
    plan = Plan(CONFIG, "paper")
    run = "results/paper/imagenet-fs/imagenet-fs-by-name/resnet10/s0"
    one = effort(plan.imagenet_fs.backbone("resnet10"), 224)
    trained = job(plan, "imagenet_fs_classifier", f"{run}/classifier.pt")
    work = work_of(plan, trained, sizes(plan), early=False)
    assert work.multiply_adds / one.multiply_adds == pytest.approx(3 * 400 * 4000 * 100)
    features = job(plan, "imagenet_fs_features", f"{run}/features/queries.npy")
    work = work_of(plan, features, sizes(plan), early=False)
    images = 1_281_167 + 50_000
    assert work.multiply_adds / one.multiply_adds == pytest.approx(images)
    assert work.disk == pytest.approx(images * 512 * 4)


def counted(module, base, novel, shots, queries, among):
    """Multiply-adds, by torch's own count, of weights of all classes and of queries' scores."""
    size = module.base_weights.shape[1]
    task = Task(torch.arange(base)[None], torch.randn(1, novel, shots, size))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        weights = module(task)
        cosine_logits(torch.randn(1, queries, size), weights[:, :among], module.scale)
    return counter.get_total_flops() / 2


@pytest.mark.parametrize("method", ["lwof-average", "lwof-attention", "wdae-gnn"])
def test_generators_of_imagenet_fs_and_their_tests_count_what_torch_counts(demo, method):
    """Each K has its own LwoF; the denoiser has one for all. Of 389 base classes 196 are scored."""
    fs = demo.imagenet_fs
    training, trials = fs.methods[method].training, fs.settings.trials
    features = int(512 * fs.scale.width)
    module = build_generator(
        fs.methods[method].generator, torch.randn(389, features), torch.tensor(10.0), None
    ).eval()
    drawn = sizes(demo)["glyph-large-queries"].images
    asked = training.novel * training.novel_queries + training.base_queries
    episodes = training.epochs * training.steps * training.batch_size
    learnt, rows = 0.0, 0
    for shots in [training.exemplars] if training.exemplars else fs.settings.shots:
        known = 389 - training.novel
        step = counted(module, known, training.novel, shots, asked, 389)
        check = counted(module, 389, 300, shots, int(drawn["val"]), 300)
        learnt += 3 * episodes * step + training.epochs * trials.val * check
        rows += episodes * (training.novel * shots + asked)
    queries = int(drawn["novel"] + drawn["base"] * 196 / 389)
    tested = sum(counted(module, 389, 311, k, queries, 507) for k in fs.settings.shots)
    run = "results/demo/imagenet-fs/glyph-large/resnet10/s0"
    generator = job(demo, "imagenet_fs_generator", f"{run}/{method}.pt")
    test = job(demo, "imagenet_fs_evaluate", f"{run}/scores/{method}")
    found = [work_of(demo, one, sizes(demo), early=False) for one in (generator, test)]
    assert found[0].multiply_adds == pytest.approx(learnt, rel=0.01)
    assert found[1].multiply_adds == pytest.approx(trials.novel * tested, rel=0.01)
    assert found[0].rows == rows
    assert found[1].rows == trials.novel * 311 * sum(fs.settings.shots)


def test_a_view_that_is_cropped_costs_less(demo):
    """WRN sees 80 of 84 pixels, here 27 of 28."""
    path = "results/demo/models/glyph-mini/wrn/epnet/s0/finetune-5shot.pt"
    work = work_of(demo, job(demo, "finetune", path), sizes(demo), early=False)
    images = work.multiply_adds / effort(demo.backbone("wrn"), 27).multiply_adds
    assert images == pytest.approx(2 * (3 * 50 * 5 * 20 + 640), rel=1e-3)


def test_what_is_published_says_how_much_is_downloaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = Plan(CONFIG, "small")
    (fetch,) = [j for j in Jobs(plan).of("all") if j.name == "cifar-100"]
    work = work_of(plan, fetch, {}, early=False)
    assert 1.5e8 < work.download < 2e8
    assert work_of(plan, Jobs(plan).of("all")[-1], {}, early=False) == Work()
