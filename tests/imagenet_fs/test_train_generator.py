"""Stage 2: fake novel classes, the loss, what is kept, and that a kill costs nothing."""

import json

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional

from epcore.backbones.cosine import cosine_logits
from epcore.errors import UserError
from epcore.generators.base import Task
from epcore.imagenet_fs.build import build_generator, load_generators, read_head
from epcore.imagenet_fs.classes import Subsets
from epcore.imagenet_fs.config import (
    ExemplarsConfig,
    GeneratorConfig,
    GeneratorTraining,
    TrialsConfig,
)
from epcore.imagenet_fs.evaluate import run as evaluate
from epcore.imagenet_fs.exemplars import Exemplars, draw
from epcore.imagenet_fs.exemplars import run as freeze
from epcore.imagenet_fs.train_generator import GeneratorTask, run, sample
from epcore.imagenet_fs.trials import Queries, hits, scored_base_images

CPU = torch.device("cpu")
KINDS = {
    "class-means": {"kind": "class-means"},
    "lwof-average": {"kind": "lwof-average"},
    "lwof-attention": {"kind": "lwof-attention", "attention_scale": 10},
    "pmn": {"kind": "pmn", "examples": 4},
    "wdae-gnn": {
        "kind": "wdae-gnn", "noise": 0.08, "temperature": 5, "neighbors": 4, "hidden": 3,
        "dropout": 0.3, "reconstruction_weight": 1,
    },
}  # fmt: skip
LAYER = {
    "kind": "linear-layer", "iterations": 60, "batch_size": 100, "learning_rate": 1,
    "momentum": 0.9, "weight_decay": 1e-3,
}  # fmt: skip
EP = {"alpha": 0.5, "training": True, "nodes": "all", "reconstruction": "propagated",
      "step": "after", "normalize_weights": False}  # fmt: skip


def training(**changes):
    settings = {
        "epochs": 3, "steps": 4, "batch_size": 2, "novel": 10, "novel_queries": 2,
        "base_queries": 30, "learning_rate": 0.01, "drops": [2], "momentum": 0.9,
        "weight_decay": 5e-4, "keep": "best",
    }  # fmt: skip
    return GeneratorTraining(**(settings | changes))


def stage(kind="wdae-gnn", shots=(1,), propagation=None, **changes):
    return GeneratorConfig(
        stage_version=1,
        generator=KINDS[kind],
        training=training(**changes),
        propagation=propagation,
        shots=shots,
        seed=0,
    )


@pytest.fixture
def exemplars(stores, tmp_path):
    """The folder of exemplar files."""
    told = ExemplarsConfig(stage_version=1, shots=(1, 3), trials={"val": 3, "novel": 4}, seed=0)
    folders = (stores[part].directory for part in ("images", "queries"))
    freeze(told, *folders, tmp_path / "exemplars")
    return tmp_path / "exemplars"


@pytest.fixture
def train(stores, features, checkpoint, exemplars):
    def function(told, out):
        files = [exemplars / f"val-{shots}shot.npz" for shots in told.shots]
        folders = (stores[part].directory for part in ("images", "queries"))
        run(told, *folders, features, checkpoint, files, out)
        return out

    return function


@pytest.fixture
def task(opened, checkpoint):
    def function(told, shots=1):
        drawn = draw(opened["images"].store, "val", shots, 3, seed=0)
        head = read_head(checkpoint)
        return GeneratorTask(told, shots, opened["images"], opened["queries"], drawn, head, CPU)

    return function


# -- episodes -------------------------------------------------------------------------------------


def test_an_episode_splits_the_base_classes_and_shows_no_image_as_exemplar_and_query(stores):
    store = stores["images"]
    base = Subsets.of(store, "val").base
    first = np.searchsorted(store.labels, base)
    counts = np.full(len(base), 12)
    rng = np.random.default_rng(0)
    seen = np.zeros(len(base))
    for _ in range(400):
        episode = sample(first, counts, training(), 3, rng)
        seen[episode.novel] += 1
        assert sorted([*episode.base, *episode.novel]) == list(range(len(base)))
        assert len(episode.novel) == 10
        order = base[np.concatenate([episode.base, episode.novel])]
        assert np.array_equal(store.labels[episode.queries], order[episode.expected])
        assert (store.labels[episode.exemplars] == base[episode.novel][:, None]).all()
        assert (np.bincount(episode.expected[30:], minlength=26)[16:] == 2).all()
        assert (episode.expected[:30] < 16).all()
        own = np.concatenate([episode.exemplars.ravel(), episode.queries[30:]])
        assert len(np.unique(own)) == 10 * (3 + 2)
    assert stats.chisquare(seen).pvalue > 1e-3


def test_episodes_are_those_of_the_seed_the_epoch_and_the_step(task):
    made = task(stage("lwof-average", steps=2))

    def queries(seed, epoch, start=0):
        seen = []
        made.config = made.config.model_copy(update={"seed": seed})
        made.loss = lambda episodes: seen.extend(tuple(each.queries) for each in episodes)
        list(made.losses(epoch, start, torch.Generator()))
        return seen

    assert queries(0, 0) == queries(0, 0)
    assert queries(0, 0)[2:] == queries(0, 0, start=1)
    places = [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert len({episode for place in places for episode in queries(*place)}) == 4 * 2 * 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_mean_over_queries_plus_the_penalty(task, opened, kind):
    """LwoF's in training too: the features are the stored ones, none of them dropped. In the cited
    code (algorithms/FewShot.py) the feature network of stage 2 is in evaluation mode, and
    `activate_dropout` stands in none of its ImageNet settings.
    """
    made = task(stage(kind), 1)
    made.model.train(kind not in ("pmn", "wdae-gnn"))  # which have noise of their own
    rng = np.random.default_rng(4)
    episodes = [sample(made.first, made.counts, made.training, 1, rng) for _ in range(3)]
    found = made.loss(episodes).item()
    total, penalties = [], []
    with torch.no_grad():
        for episode in episodes:
            given = Task(
                torch.from_numpy(episode.base)[None], opened["images"].of(episode.exemplars)[None]
            )
            novel = torch.from_numpy(episode.novel)[None]
            weights, penalty = made.model.weights_and_penalty(given, novel)
            asked = opened["images"].of(episode.queries)
            scores = made.model.logits(asked, weights[0])
            assert torch.equal(scores, cosine_logits(asked, weights[0], 10.0)) == (kind != "pmn")
            expected = torch.from_numpy(episode.expected)
            total.append(functional.cross_entropy(scores.double(), expected).item())
            penalties.append(penalty.item())
    assert (np.mean(penalties) > 0) == (kind == "wdae-gnn")
    scale = made.model.scale.item()
    assert scale == 10
    assert found == pytest.approx(np.mean(total) + np.mean(penalties), rel=1e-5)


def test_validation_is_the_top_5_accuracy_among_novel_validation_classes(task, opened):
    made = task(stage("lwof-average"))
    accuracy, loss = made.validate()
    images, queries = opened["images"], opened["queries"]
    labels = images.store.class_indices("val")
    rows = np.flatnonzero(np.isin(queries.store.labels, labels))
    expected = torch.from_numpy(np.searchsorted(labels, queries.store.labels[rows]))
    accuracies, losses = [], []
    for drawn in draw(images.store, "val", 1, 3, seed=0).rows:
        weights = images.of(drawn)[:, 0]
        scores = cosine_logits(queries.of(rows), weights, 10.0)
        accuracies.append(hits(scores, expected).double().mean().item())
        losses.append(functional.cross_entropy(scores, expected).item())
    assert accuracy == pytest.approx(np.mean(accuracies))
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_validation_takes_the_denoised_weights_themselves(task, opened):
    """A whole step, whatever the sizes of the test are."""
    made = task(stage("wdae-gnn"))
    made.model.train()
    found = made.validate()
    images, queries = opened["images"], opened["queries"]
    labels = images.store.class_indices("val")
    rows = np.flatnonzero(np.isin(queries.store.labels, labels))
    expected = torch.from_numpy(np.searchsorted(labels, queries.store.labels[rows]))
    base = torch.arange(len(made.first))[None]
    accuracies, losses = [], []
    for drawn in draw(images.store, "val", 1, 3, seed=0).rows:
        with torch.no_grad():
            weights = made.model.eval()(Task(base, images.of(drawn)[None]))[0, base.shape[1] :]
        scores = cosine_logits(queries.of(rows), weights, 10.0)
        accuracies.append(hits(scores, expected).double().mean().item())
        losses.append(functional.cross_entropy(scores, expected).item())
    assert found == pytest.approx((np.mean(accuracies), np.mean(losses)), rel=1e-5)


# -- the stage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "shots", "propagation"),
    [
        ("wdae-gnn", (1,), None),
        ("wdae-gnn", (1,), EP),
        ("lwof-attention", (1, 3), None),
        ("pmn", (1, 3), None),
    ],
    ids=["wdae-gnn", "wdae-gnn with EP", "lwof for each K", "pmn for each K"],
)
def test_a_kill_changes_nothing(train, tmp_path, monkeypatch, kind, shots, propagation):
    told = stage(kind, shots, propagation)
    whole = load_generators(train(told, tmp_path / "whole.pt"), kind)
    validate, seen = GeneratorTask.validate, []

    def dying(self):
        seen.append(None)
        if len(seen) == 3 * len(shots) - 1:
            raise KeyboardInterrupt
        return validate(self)

    monkeypatch.setattr(GeneratorTask, "validate", dying)
    with pytest.raises(KeyboardInterrupt):
        train(told, tmp_path / "killed.pt")
    killed = load_generators(train(told, tmp_path / "killed.pt"), kind)
    assert len(seen) == 3 * len(shots) + 1
    assert whole.keys() == killed.keys() == set(shots)
    for number in shots:
        assert all(torch.equal(whole[number][k], killed[number][k]) for k in whole[number])
    left = (tmp_path / "killed.state").iterdir()
    assert [path.suffix for path in left] == [".pt"] * len(shots)


def test_generators_learn(train, tmp_path):
    """Validation accuracy on features that say the class: above chance, and not lost."""
    out = train(stage("wdae-gnn", epochs=6, steps=10, drops=[]), tmp_path / "wdae.pt")
    lines = out.with_name("wdae-1shot.csv").read_text().splitlines()[1:]
    losses = [float(line.split(",")[2]) for line in lines]
    assert losses[-1] < 0.8 * losses[0]
    assert json.loads(out.with_suffix(".meta.json").read_text())["parameters"] > 0


@pytest.mark.parametrize("keep", ["last", "best"])
def test_the_epoch_that_the_settings_name_is_kept(train, tmp_path, monkeypatch, keep):
    """The first epoch is made to look best."""
    accuracies, states = iter([0.9, 0.1, 0.1]), []

    def validate(self):
        states.append({name: part.clone() for name, part in self.model.state_dict().items()})
        return next(accuracies), 1.0

    monkeypatch.setattr(GeneratorTask, "validate", validate)
    out = train(stage("lwof-average", keep=keep), tmp_path / "lwof.pt")
    kept = load_generators(out, "lwof-average")[1]
    same = [all(torch.equal(kept[name], state[name]) for name in kept) for state in states]
    assert same == {"last": [False, False, True], "best": [True, False, False]}[keep]


def test_a_generator_is_built_of_the_base_weights_and_the_scale_of_stage_1(checkpoint, task):
    head = read_head(checkpoint)
    for kind in KINDS:
        model = task(stage(kind)).model
        assert torch.equal(model.base_weights, head["weight"])
        assert model.scale.item() == 10


def test_propagation_without_a_denoiser_is_refused(checkpoint):
    head = read_head(checkpoint)
    told = stage("lwof-average", propagation=EP)
    with pytest.raises(UserError, match="lwof-average has none; take propagation out"):
        build_generator(told.generator, head["weight"], head["scale"], told.propagation)


@pytest.mark.parametrize(
    ("changes", "shots", "message"),
    [
        ({"novel": 26}, 1, "of its 26 base classes 26 cannot be fake novel ones"),
        (
            {"novel_queries": 10},
            3,
            "smallest base class has 12 images, episodes with K = 3 need 13",
        ),
    ],
)
def test_episodes_that_the_data_cannot_fill_are_told(task, changes, shots, message):
    with pytest.raises(UserError, match=message):
        task(stage(**changes), shots)


# -- the test -------------------------------------------------------------------------------------


def scores_of(stores, features, checkpoint, exemplars, generator, out, kind="wdae-gnn", **more):
    settings = {"step_sizes": (1.0, 0.6), "propagation": None} | more
    made = {"linear-layer": LAYER, **KINDS}[kind]
    told = TrialsConfig(stage_version=1, generator=made, shots=(1, 3), prior=0.7, **settings)
    files = [exemplars / f"novel-{shots}shot.npz" for shots in told.shots]
    folders = (stores[part].directory for part in ("images", "queries"))
    evaluate(told, *folders, features, checkpoint, files, out, generator)
    return {path.name: path.read_text() for path in sorted(out.glob("*.csv"))}


def test_every_measure_and_shot_has_a_line_for_each_trial_and_repeats_to_the_byte(
    stores, features, checkpoint, exemplars, train, tmp_path
):
    out = train(stage(), tmp_path / "wdae.pt")
    given = (stores, features, checkpoint, exemplars, out)
    found = scores_of(*given, tmp_path / "scores")
    assert found == scores_of(*given, tmp_path / "again")
    measures = ("all", "all-prior", "novel")
    assert sorted(found) == sorted(f"{m}-{k}shot.csv" for m in measures for k in (1, 3))
    for text in found.values():
        lines = text.splitlines()
        assert lines[0] == "episode,accuracy"
        assert [line.split(",")[0] for line in lines[1:]] == ["0", "1", "2", "3"]
        assert all(0 < float(line.split(",")[1]) <= 1 for line in lines[1:])
    with_ep = scores_of(*given, tmp_path / "ep", propagation=EP)
    assert with_ep["novel-1shot.csv"] != found["novel-1shot.csv"]
    stepped = scores_of(*given, tmp_path / "step", step_sizes=(1.0, 0.1))
    assert stepped["all-1shot.csv"] == found["all-1shot.csv"]
    assert stepped["all-3shot.csv"] != found["all-3shot.csv"]


def test_a_generator_for_each_shot_is_tested_with_its_own(
    stores, features, checkpoint, exemplars, train, tmp_path
):
    both = train(stage("lwof-attention", (1, 3), learning_rate=0.3), tmp_path / "both.pt")
    given = (stores, features, checkpoint, exemplars)
    found = scores_of(*given, both, tmp_path / "of-both", "lwof-attention")
    third = train(stage("lwof-attention", (3,), learning_rate=0.3), tmp_path / "third.pt")
    alone = scores_of(*given, third, tmp_path / "of-third", "lwof-attention")
    assert found["all-3shot.csv"] == alone["all-3shot.csv"]
    assert found["all-1shot.csv"] != alone["all-1shot.csv"]


def test_class_means_need_no_generator_and_scores_of_novel_classes_have_their_factor(
    stores, features, checkpoint, exemplars, opened, tmp_path
):
    given = (stores, features, checkpoint, exemplars, None)
    found = scores_of(
        *given, tmp_path / "scores", "class-means", step_sizes=(1.0, 1.0), novel_factors=(1.0, 0.6)
    )
    head, store = read_head(checkpoint), stores["images"]
    subsets = Subsets.of(store, "novel")
    scored = Queries.of(opened["queries"], subsets, CPU)
    for shots, factor in ((1, 1.0), (3, 0.6)):
        rows = Exemplars.load(exemplars / f"novel-{shots}shot.npz", store, "novel", shots).rows
        lines = found[f"all-{shots}shot.csv"].splitlines()[1:]
        for line, of_trial in zip(lines, rows, strict=True):
            values = np.asarray(opened["images"].values[of_trial], np.float64)
            means = (values / np.linalg.norm(values, axis=-1, keepdims=True)).mean(axis=1)
            weights = torch.cat([head["weight"], torch.from_numpy(means).float()])
            scores = cosine_logits(scored.features, weights[scored.columns], head["scale"])
            expected = scored.accuracies(scores, 0.7, factor)["all"]
            assert float(line.split(",")[1]) == pytest.approx(expected, abs=1e-6)


def test_a_linear_layer_is_trained_for_each_trial_on_a_checkpoint_of_any_classifier(
    stores, features, checkpoint, exemplars, tmp_path
):
    """Far above chance, which is 5 of 11 novel classes and 5 of 23 scored ones."""
    content = torch.load(checkpoint, weights_only=True)
    del content["class_head"]["scale"]
    linear = tmp_path / "linear.pt"
    torch.save(content, linear)

    def scores(name, path, **more):
        given = (stores, features, path, exemplars, None, tmp_path / name, "linear-layer")
        return scores_of(*given, **more)

    found = scores("scores", linear)
    assert found == scores("again", checkpoint)
    assert found != scores("seed", linear, seed=1)
    means = {
        name: np.mean([float(line.split(",")[1]) for line in text.splitlines()[1:]])
        for name, text in found.items()
    }
    assert means["novel-1shot.csv"] > 0.8
    assert means["novel-3shot.csv"] > 0.95
    assert means["all-3shot.csv"] > 0.8


def test_a_linear_layer_is_trained_on_images_of_the_scored_base_classes(opened):
    images = opened["images"]
    store, subsets = images.store, Subsets.of(images.store, "novel")
    base = scored_base_images(images, subsets, CPU)
    assert len(base.features) == len(base.classes) == 12 * 12
    rows = [row for row, label in enumerate(store.labels)
            if store.classes[label].group == "base_classes_2"]  # fmt: skip
    assert torch.equal(base.features, images.of(np.array(rows)))
    assert np.array_equal(subsets.base[base.classes.numpy()], store.labels[rows])


def test_generators_of_another_kind_are_refused(
    stores, features, checkpoint, exemplars, train, tmp_path
):
    out = train(stage(), tmp_path / "wdae.pt")
    with pytest.raises(UserError, match="holds generators wdae-gnn, not lwof-average"):
        scores_of(stores, features, checkpoint, exemplars, out, tmp_path / "x", "lwof-average")
    with pytest.raises(UserError, match="holds no weight generators"):
        load_generators(checkpoint, "wdae-gnn")
    with pytest.raises(UserError, match="has no cosine classifier"):
        read_head(out)


def test_exemplars_are_those_of_the_file(stores, exemplars):
    rows = Exemplars.load(exemplars / "val-3shot.npz", stores["images"], "val", 3).rows
    assert np.array_equal(rows, draw(stores["images"], "val", 3, 3, seed=0).rows)
