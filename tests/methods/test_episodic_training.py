"""In some seconds each method learns what can be learned, and nothing where there is nothing."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from narrow_methods import NARROW, TRAINED

from epcore.backbones.base import parameter_count
from epcore.backbones.checkpoint import Checkpoint, build
from epcore.backbones.config import BackboneConfig
from epcore.classifiers.episodes import EpisodeBatch
from epcore.data.augment import Augmenter
from epcore.data.config import View
from epcore.data.episodes import pool_of, sample
from epcore.errors import UserError
from epcore.evaluation import meta_test
from epcore.evaluation.config import MetaTestConfig
from epcore.evaluation.meta_test import EpisodicTester
from epcore.methods import METHODS, build_method
from epcore.methods.base import Pretrained
from epcore.training import episodic
from epcore.training.config import MetaTrainConfig
from epcore.training.episodic import EpisodicTask
from epcore.training.loop import fit

CPU = torch.device("cpu")
WHOLE = View.model_validate({"resize": 1, "crop": 1})
CONV4 = BackboneConfig(architecture="conv4")
# Enough for each on pictures of two colors.
STEPS = {
    "gnn": 80, "maml": 48, "leo": 100, "lst": 80, "mtl": 80, "tpn": 60, "tpn-resnet12": 120,
    "wdae-gnn": 200,
}  # fmt: skip
RATES = {"gnn": 0.01, "tpn-resnet12": 0.001}
# A batch of BatchNorm has an image of each task of GNN and EGNN; with two tasks TPN learned from
# some seeds only, with five from all five that were tried.
TASKS = {"gnn": 10, "egnn": 10, "tpn": 5, "tpn-resnet12": 5}
QUERIES = {"gnn": 1, "egnn": 1}  # each is a graph of its own, which takes time
WAYS = {"wdae-gnn": 10}  # half of them are not taken out of the base
# What keeps wDAE-GNN close to the weights of a trained network keeps it from learning beside those
# of an untrained one.
OPTIONS = NARROW | {"wdae-gnn": {"dropout": 0, "noise": 0, "reconstruction_weight": 0}}


def stage_of(name, shot=1, **training):
    settings = {
        "epochs": 1, "steps": STEPS.get(name, 40), "tasks": TASKS.get(name, 2),
        "way": WAYS.get(name, 5), "queries": QUERIES.get(name, 3),
        "learning_rate": RATES.get(name, 0.003), "weight_decay": 0, "halve_every": 10,
    }  # fmt: skip
    return MetaTrainConfig(
        backbone=CONV4,
        view=WHOLE,
        precision="fp32",
        method={"name": name} | OPTIONS.get(name, {}),
        training=settings | training,
        shot=shot,
        seed=0,
    )


def score_lines(store, stage, weights, episodes):
    """The lines of a test's file, its head among them."""
    config = MetaTestConfig(
        backbone=CONV4, view=WHOLE, precision="fp32", method=stage.method, way=5,
        batch_statistics=False,
    )  # fmt: skip
    file = episodes.with_suffix(".csv")
    meta_test.run(config, store.directory, weights, episodes, file)
    return file.read_text(encoding="utf-8").splitlines()


def drawn(store, split, episodes=30, queries=5, shot=1):
    return sample(pool_of(store, split), 5, shot, queries, episodes, seed=7)


def task_of(store, name, **training):
    validation = drawn(store, "val", episodes=8)
    return EpisodicTask(stage_of(name, **training), store, validation, CPU, start_of(name, store))


def start_of(name, store):
    """A network that is not pretrained; the weights of base classes are means of its features."""
    if not METHODS[name].pretrained:
        return None
    network = build(CONV4).eval()
    classes = [np.flatnonzero(store.labels == label)[:20] for label in store.class_indices("base")]
    with torch.no_grad():
        images = [
            Augmenter((), WHOLE).eval_transform(torch.from_numpy(store.pixels(rows)))
            for rows in classes
        ]
        means = [network(of_class).mean(dim=0) for of_class in images]
    return Pretrained(network, torch.stack(means), 10)


def trained(store, name, folder, **training):
    task = task_of(store, name, **training)
    outcome = fit(task, task.settings, 0, folder / "state.pt", name)
    task.model.load_state_dict(outcome.weights)
    return task.method


def accuracies(store, method, episodes):
    return EpisodicTester(method, WHOLE, "fp32", CPU).test(store, episodes).accuracies


# The fast tests have these alone, whose steps are quick.
QUICK = ("protonet", "matching", "masked-k-means")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each not in QUICK)) for each in TRAINED]
)
def test_it_learns_to_tell_new_classes_apart(colors, dimmed, tmp_path, name):
    """GNN needs more steps where images differ in brightness; untrained it is at chance anyway."""
    store = colors if name == "gnn" else dimmed
    novel = drawn(store, "novel", episodes=20)
    before = accuracies(store, task_of(store, name).method, novel).mean()
    after = accuracies(store, trained(store, name, tmp_path), novel).mean()
    assert after > max(0.6, before + 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_it_stays_at_chance_where_labels_mean_nothing(shuffled, tmp_path, name):
    method = trained(shuffled, name, tmp_path, steps=8)
    found = accuracies(shuffled, method, drawn(shuffled, "novel", episodes=40))
    spread = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - 0.2) < 4 * spread
    assert spread < 0.03


@pytest.mark.parametrize(("given", "shot"), [({}, 1), ({"shot": 4}, 4)])
def test_a_training_episode_has_the_shots_of_the_test_unless_others_are_given(colors, given, shot):
    """And the episodes of validation those of the test."""
    validation = drawn(colors, "val", episodes=2)
    task = EpisodicTask(stage_of("tpn", steps=1, **given), colors, validation, CPU)
    seen = []
    task.model.loss = lambda episodes: seen.append(episodes) or episodes.points.sum()
    list(task.losses(0, 0, torch.Generator()))
    assert [(each.shot, each.points.shape[1]) for each in seen] == [(shot, 5 * (shot + 3))]
    assert task.images_per_step == TASKS["tpn"] * 5 * (shot + 3)
    task.model.scores = lambda episodes: seen.append(episodes) or torch.rand(2, 25, 5)
    task.validate()
    assert seen[1].shot == 1


def test_a_training_episode_has_the_unlabeled_images_that_are_asked_for(colors):
    task = task_of(colors, "tpn", steps=1, unlabeled=2)
    seen = []
    task.model.loss = lambda episodes: seen.append(episodes) or episodes.points.sum()
    list(task.losses(0, 0, torch.Generator()))
    assert [(each.queries, each.unlabeled) for each in seen] == [(15, 10)]
    assert task.images_per_step == seen[0].points.shape[0] * seen[0].points.shape[1]


def test_episodes_are_those_of_the_seed_and_the_epoch(colors):
    validation = drawn(colors, "val", episodes=2)

    def rows(seed, epoch):
        told, seen = stage_of("protonet", steps=2).model_copy(update={"seed": seed}), []
        task = EpisodicTask(told, colors, validation, CPU)
        batch = task.images.batch
        task.images.batch = lambda asked: seen.append(tuple(asked)) or batch(asked)
        list(task.losses(epoch, 0, torch.Generator()))
        return tuple(seen)

    assert rows(0, 0) == rows(0, 0)
    assert len({rows(0, 0), rows(1, 0), rows(0, 1), rows(1, 1)}) == 4


class Killed(EpisodicTask):
    """Dies in the middle of its second epoch."""

    def losses(self, epoch, start, generator):
        for step, loss in enumerate(super().losses(epoch, start, generator), start):
            if (epoch, step) == (1, 1):
                raise KeyboardInterrupt
            yield loss


@pytest.mark.parametrize("name", ["protonet", "metaoptnet"])
def test_a_killed_training_ends_as_if_nothing_had_happened(colors, tmp_path, name):
    """The moments of Adam or momentum of SGD, augmentation, dropout and a rate that halves."""
    settings = {"epochs": 3, "steps": 2, "halve_every": 1, "clip": 0.5, "weight_decay": 0.01}
    if name == "metaoptnet":
        settings |= {"momentum": 0.9, "augmentation": ("padded-crop", "jitter", "flip")}
    validation = drawn(colors, "val", episodes=4)

    def run(kind, file):
        task = kind(stage_of(name, **settings), colors, validation, CPU)
        return fit(task, task.settings, 0, tmp_path / file, name)

    whole = run(EpisodicTask, "whole.pt")
    with pytest.raises(KeyboardInterrupt):
        run(Killed, "killed.pt")
    torch.manual_seed(99)  # another process has other random numbers
    resumed = run(EpisodicTask, "killed.pt")
    assert (whole.resumed_from, resumed.resumed_from) == (None, 1)
    assert [row["learning_rate"] for row in whole.curve] == [0.003, 0.0015, 0.00075]
    assert resumed.curve == whole.curve
    for weight, tensor in whole.weights.items():
        assert torch.equal(tensor, resumed.weights[weight]), weight


def scores_in_test(store, method, episodes):
    """What a test compares with the classes of the queries."""
    seen = []

    def scores(asked):
        seen.append(type(method).scores(method, asked))
        return seen[-1]

    method.scores = scores
    accuracies(store, method, episodes)
    return torch.cat(seen)


INDUCTIVE = [
    {"name": "egnn", "transductive": False},
    *({"name": name} for name in ("protonet", "matching", "relation-net", "gnn", "maml")),
    *(
        {"name": name} | NARROW[name]
        for name in ("protonets-plus-plus", "robust", "tadam", "metaoptnet")
    ),
    {"name": "can", "transductive": False} | NARROW["can"],
]


@pytest.mark.parametrize("settings", INDUCTIVE, ids=lambda settings: settings["name"])
def test_after_training_a_query_is_tested_without_the_others_and_without_dropout(colors, settings):
    """Running statistics are those of an episode, else hardly any method tells images apart."""
    method = build_method(settings, 28, 5, "here")
    for module in method.modules():
        if hasattr(module, "running_var"):
            module.momentum = None
    episodes = drawn(colors, "novel", episodes=2, queries=2)
    images = torch.from_numpy(colors.pixels(episodes.images()[0])).permute(0, 3, 1, 2) / 127.5 - 1
    with torch.no_grad():
        method.train().scores(EpisodeBatch(method.embed(images)[None], 5, 1, 10))
    query = episodes.query.copy()
    query[:, -1, -1] = drawn(colors, "val", episodes=2).query[:, 0, 0]
    before = scores_in_test(colors, method, episodes)
    after = scores_in_test(colors, method.train(), replace(episodes, query=query))
    shift = (after - before).abs()
    assert shift[:, :-1].max() < 0.01 * shift[:, -1].max()


@pytest.mark.parametrize("name", ["relation-net", "gnn", "egnn"])
def test_statistics_of_a_batch_turn_no_dropout_on(colors, name):
    """Scores are those of BatchNorm alone in training mode, and the same again."""
    method = build_method({"name": name}, 28, 5, "here")
    episodes = drawn(colors, "novel", episodes=2, queries=2)
    tester = EpisodicTester(method, WHOLE, "fp32", CPU, batch_statistics=True)
    torch.manual_seed(1)
    first = tester.test(colors, episodes).losses
    assert (tester.test(colors, episodes).losses == first).all()
    method.train()
    for module in method.modules():
        if isinstance(module, torch.nn.Dropout2d):
            module.eval()
    for number, rows in enumerate(episodes.images()):
        images = torch.from_numpy(colors.pixels(rows)).permute(0, 3, 1, 2) / 127.5 - 1
        with torch.no_grad():
            points = torch.cat([method.embed(images[:5]), method.embed(images[5:])])
            logits = method.scores(EpisodeBatch(points[None], 5, 1, 10))[0]
        expected = torch.from_numpy(episodes.query_labels[number])
        loss = torch.nn.functional.cross_entropy(logits, expected)
        assert loss.item() == pytest.approx(first[number], rel=1e-4)


@pytest.mark.parametrize("name", ["gnn", "egnn"])
def test_one_episode_a_step_is_too_few_where_a_position_is_a_batch(colors, name):
    with pytest.raises(UserError, match=f"^{name}: BatchNorm sees one image of each .*2 or more"):
        task_of(colors, name, tasks=1)


def test_accuracy_is_the_share_of_right_answers_however_many_queries_a_class_has(dimmed):
    """Counted query by query, each image embedded by itself."""
    method = build_method({"name": "protonet"}, 28, 5, "here")
    episodes = sample(pool_of(dimmed, "novel"), 5, 2, 3, 6, seed=7, dirichlet=1.0)
    found = EpisodicTester(method, WHOLE, "fp32", CPU).test(dimmed, episodes)

    @cache
    def embedded(row):
        image = torch.from_numpy(dimmed.pixels(np.array([row]))).permute(0, 3, 1, 2) / 127.5 - 1
        with torch.no_grad():
            return method.eval().embed(image)[0].double()

    shares, losses = [], []
    for support, query in zip(episodes.support, episodes.query, strict=True):
        means = [sum(embedded(row) for row in rows) / len(rows) for rows in support]
        answers, errors = [], []
        for place, rows in enumerate(query):
            for row in rows[rows >= 0]:
                logits = torch.stack([-(embedded(row) - mean).square().sum() for mean in means])
                answers.append(int(logits.argmax()) == place)
                errors.append(float(logits.logsumexp(dim=0) - logits[place]))
        assert len(answers) == 5 * 3
        shares.append(np.mean(answers))
        losses.append(np.mean(errors))
    counts = (episodes.query >= 0).sum(axis=2)
    assert (counts.min(axis=1) < counts.max(axis=1)).all()
    assert found.accuracies == pytest.approx(shares)
    assert found.losses == pytest.approx(losses, rel=1e-3)


def test_batch_statistics_tell_a_query_about_the_others(colors):
    method = build_method({"name": "protonet"}, 28, 5, "here")
    asked = drawn(colors, "novel", episodes=2).images()
    tester = EpisodicTester(method, WHOLE, "fp32", CPU, batch_statistics=True)
    with torch.no_grad():
        points = tester._episode_points(colors, asked, 5)
        others = asked.copy()
        others[:, -1] = drawn(colors, "val", episodes=2).images()[:, -1]
        found = tester._episode_points(colors, others, 5)
    same = (points == found).all(dim=-1)
    assert same[:, :5].all()
    assert not same[:, 5:].any()


def test_batch_statistics_are_those_of_an_episode_behind_the_encoder_as_well(colors):
    method = build_method({"name": "relation-net"}, 28, 5, "here")
    method.last.weight.data *= 1000  # the first ones hardly tell classes apart
    episodes = drawn(colors, "novel", episodes=3)
    tester = EpisodicTester(method, WHOLE, "fp32", CPU, batch_statistics=True)
    found = tester.test(colors, episodes).losses
    labels = torch.from_numpy(episodes.query_labels)
    method.train()
    expected = []
    for asked, classes in zip(episodes.images(), labels, strict=True):
        images = torch.from_numpy(colors.pixels(asked)).permute(0, 3, 1, 2) / 127.5 - 1
        with torch.no_grad():
            points = torch.cat([method.embed(images[:5]), method.embed(images[5:])])
            logits = method.scores(EpisodeBatch(points[None], 5, 1, len(asked) - 5))[0]
        expected.append(torch.nn.functional.cross_entropy(logits, classes).item())
    assert found == pytest.approx(expected, rel=1e-4)


def test_unlabeled_images_for_a_method_that_takes_none_are_told(colors, tmp_path):
    method = build_method({"name": "protonet"}, 28, 5, "here")
    weights, episodes = tmp_path / "weights.pt", tmp_path / "episodes.npz"
    Checkpoint(CONV4, method.state_dict()).save(weights)
    sample(pool_of(colors, "novel"), 5, 1, 3, 2, seed=0, unlabeled=2).save(episodes)
    stage = MetaTestConfig(
        backbone=CONV4, view=WHOLE, precision="fp32", method={"name": "protonet"}, way=5,
        batch_statistics=False,
    )  # fmt: skip
    with pytest.raises(UserError, match="unlabeled images, which protonet does not take"):
        meta_test.run(stage, colors.directory, weights, episodes, tmp_path / "scores.csv")
    assert not (tmp_path / "scores.csv").exists()


def test_a_head_over_the_base_classes_is_trained_and_not_kept(colors, tmp_path):
    """CAN's is no part of its checkpoint, nor of its number of parameters, and it is tested."""
    drawn(colors, "val", episodes=4).save(tmp_path / "val.npz")
    drawn(colors, "novel", episodes=4).save(tmp_path / "novel.npz")
    stage = stage_of("can", steps=2)
    before = task_of(colors, "can").model["base_head"].weight.clone()
    weights = tmp_path / "meta-1shot.pt"
    episodic.run(stage, colors.directory, tmp_path / "val.npz", weights, require_gpu=False)
    method = build_method(stage.method, 28, 5, "here")
    Checkpoint.load(weights, CONV4).fill(method)
    facts = json.loads(weights.with_suffix(".meta.json").read_text(encoding="utf-8"))
    assert facts["parameters"] == parameter_count(method)
    (state,) = (tmp_path / "meta-1shot.state").glob("*.pt")
    after = torch.load(state, weights_only=True)["best"]["weights"]["base_head.weight"]
    assert after.shape == before.shape == (24, method.base_features)
    assert not torch.equal(after, before)
    assert len(score_lines(colors, stage, weights, tmp_path / "novel.npz")) == 1 + 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["protonet", "can", "leo", "lst", "mtl", "wdae-gnn"])
def test_the_checkpoint_of_a_training_is_read_again(colors, tmp_path, name):
    drawn(colors, "val", episodes=2).save(tmp_path / "val.npz")
    stage, weights = stage_of(name, steps=1), tmp_path / "meta-1shot.pt"
    start, checkpoint = start_of(name, colors), None
    if start:
        checkpoint = tmp_path / "pretrain.pt"
        head = {"weight": start.base_weights, "scale": torch.tensor(10.0)}
        Checkpoint(CONV4, start.backbone.state_dict(), head).save(checkpoint)
    episodic.run(stage, colors.directory, tmp_path / "val.npz", weights, False, checkpoint)
    method = build_method(stage.method, 28, 5, "here", start)
    Checkpoint.load(weights, CONV4).fill(method)
    if start:
        drawn(colors, "novel", episodes=2).save(tmp_path / "novel.npz")
        assert len(score_lines(colors, stage, weights, tmp_path / "novel.npz")) == 1 + 2
    if name in ("lst", "mtl"):
        kept, before = method.state_dict(), Checkpoint.load(checkpoint, CONV4).weights
        fixed = [key for key in kept if "convolution." in key]
        assert len(fixed) == 4
        for key in fixed:
            first = before[key.removeprefix("backbone.").replace("convolution.", "")]
            assert torch.equal(kept[key], first)


def test_a_pretrained_network_of_other_base_classes_is_refused(colors, tmp_path):
    start = start_of("leo", colors)
    path = tmp_path / "pretrain.pt"
    head = {"weight": start.base_weights[:7], "scale": torch.tensor(10.0)}
    Checkpoint(CONV4, start.backbone.state_dict(), head).save(path)
    with pytest.raises(UserError, match=r"pretrain\.pt knows 7 classes, data set .* has 24 base"):
        episodic.start_from(path, CONV4, colors, CPU)
