"""Phase two: episodes of base classes, starting from the pretrained network."""

import json

import numpy as np
import pytest
import torch
from reference import cross_entropy, embeddings, label_scores

from epcore.backbones.checkpoint import Checkpoint, build, state_of
from epcore.classifiers.episodes import EpisodeBatch
from epcore.errors import UserError
from epcore.training import finetune, pretrain

WAY, SHOT, QUERIES = 5, 2, 3  # what the toy's stages are told
SUPPORT = WAY * SHOT


@pytest.fixture
def episode(store):
    """Store rows of one episode, its class of each query, and the base class of every image."""
    base = [n for n, c in enumerate(store.classes) if c.split == "base"]
    chosen = [4, 0, 5, 2, 1]
    support, query, of_queries, of_all = [], [], [], []
    for place, number in enumerate(chosen):
        rows = np.flatnonzero(store.labels == base[number])
        support += list(rows[:SHOT])
        query += list(rows[SHOT : SHOT + QUERIES])
        of_queries += [place] * QUERIES
    for row in support + query:
        of_all.append(base.index(store.labels[row]))
    return np.array(support + query), of_queries, of_all


def images(store, rows):
    return torch.from_numpy(store.images[rows].transpose(0, 3, 1, 2) / 127.5 - 1).float()


@pytest.mark.parametrize(
    ("recipe", "bandwidth", "classes_of", "logits_of", "weight"),
    [
        ("epnet", "std", "features", "log-scores", 0.0),
        ("epnet", "std", "features", "log-scores", 0.1),
        ("epnet", "std", "features", "log-scores", 0.5),
        ("net", None, "features", "log-scores", 0.1),
        ("epnet-paper", "std", "embeddings", "log-scores", 0.1),
        ("net-paper", None, "embeddings", "log-scores", 0.1),
        ("epnet-paper-literal", "var", "embeddings", "scores", 0.1),
        ("net-paper-literal", None, "embeddings", "scores", 0.1),
    ],
)
def test_the_loss_is_that_of_the_queries_and_a_part_of_that_of_all_base_classes(
    finetuning, store, episode, recipe, bandwidth, classes_of, logits_of, weight
):
    task = finetuning(recipe, finetuning={"class_weight": weight})
    rows, of_queries, of_all = episode
    batch = images(store, rows)
    features = task.model.backbone(batch).detach().double().numpy()
    points = {"features": features, "embeddings": features}
    if bandwidth is not None:
        points["embeddings"] = embeddings(features, bandwidth)
    graph = "var" if "literal" in recipe else "std"
    normalize = "paper" not in recipe
    scores = label_scores(points["embeddings"], WAY, SHOT, graph, normalize)[SUPPORT:]
    logits = np.log(scores + 1e-6) if logits_of == "log-scores" else scores
    head = task.model.class_head
    known = points[classes_of] @ head.weight.detach().double().numpy().T
    known += head.bias.detach().double().numpy()
    expected = cross_entropy(logits, of_queries) + weight * cross_entropy(known, of_all)
    loss = task.loss(batch, task.labels[rows]).item()
    assert loss == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("recipe", ["eft-rot", "eft-rot-ep"])
def test_without_label_propagation_the_loss_is_that_of_prototypes(
    finetuning, store, episode, recipe
):
    task = finetuning(recipe, finetuning={"class_weight": 0})
    rows, of_queries, _ = episode
    batch = images(store, rows)
    points = task.model.backbone(batch).detach().double().numpy()
    if recipe == "eft-rot-ep":
        points = embeddings(points)
    prototypes = points[:SUPPORT].reshape(WAY, SHOT, -1).mean(axis=1)
    squared = ((points[SUPPORT:, None] - prototypes) ** 2).sum(axis=2)
    expected = cross_entropy(-squared / np.sqrt(points.shape[1]), of_queries)
    assert task.loss(batch, task.labels[rows]).item() == pytest.approx(expected, rel=1e-4)


def test_taken_by_the_letter_the_class_distribution_is_the_softmax_of_the_scores(
    finetuning, store, episode
):
    task = finetuning("epnet-paper-literal")
    points = task.model.backbone(images(store, episode[0])).detach()
    scores = label_scores(points.double().numpy(), WAY, SHOT, "var", normalize=False)[SUPPORT:]
    expected = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    episode = EpisodeBatch(points, WAY, SHOT, WAY * QUERIES)
    distribution = task.inference.classifier.scores(episode).softmax(dim=-1)
    assert distribution.numpy() == pytest.approx(expected, abs=1e-5)


def test_the_gradient_reaches_the_first_convolution_through_both_propagations(
    finetuning, store, episode, slope_and_gradient
):
    task = finetuning("epnet", finetuning={"class_weight": 0})
    batch, labels = images(store, episode[0]), task.labels[episode[0]]
    slope, gradient = slope_and_gradient(task, lambda: task.loss(batch, labels))
    assert gradient > 0.01
    assert slope == pytest.approx(gradient, rel=0.02)


def test_it_starts_from_the_pretrained_backbone_and_class_head_without_the_rotation_head(
    stage_config, toy, finetuning, store, validation, tmp_path
):
    stage = stage_config("pretrain", pretraining={"epochs": 1})
    pretrain.run(stage, toy.data, toy.val, tmp_path / "pretrain.pt", require_gpu=False)
    trained = Checkpoint.load(tmp_path / "pretrain.pt", stage.backbone)
    task = finetune.FinetuningTask(
        stage_config("finetune"), store, validation, trained, torch.device("cpu")
    )
    assert {name.split(".")[0] for name in task.model.state_dict()} == {"backbone", "class_head"}
    for part, weights in (("backbone", trained.weights), ("class_head", trained.class_head)):
        for name, tensor in getattr(task.model, part).state_dict().items():
            assert torch.equal(tensor, weights[name])


def test_every_epoch_draws_new_episodes_of_base_classes(finetuning, store):
    class Recording(finetune.FinetuningTask):
        def loss(self, batch, labels):
            seen.append((batch, labels))
            return batch.sum()

    seen = []
    task = finetuning(kind=Recording)
    for epoch in (0, 1):
        assert len(list(task.losses(epoch, 0, torch.Generator()))) == task.steps == 4
    base = store.image_indices("base")
    stored = images(store, base).flatten(1)
    episodes = set()
    for batch, labels in seen:
        apart = torch.cdist(batch.flatten(1), stored, compute_mode="donot_use_mm_for_euclid_dist")
        assert apart.min(dim=1).values.max() < 0.01
        rows = base[apart.argmin(dim=1).numpy()]
        assert len(set(rows)) == WAY * (SHOT + QUERIES)
        classes = store.labels[rows]
        support, query = classes[:SUPPORT], classes[SUPPORT:]
        assert list(query) == [label for label in support[::SHOT] for _ in range(QUERIES)]
        assert torch.equal(labels, task.labels[rows])
        episodes.add(tuple(rows))
    assert len(episodes) == 8


def test_episodes_are_those_of_the_seed_and_the_epoch(finetuning):
    def rows(seed, epoch):
        task, seen = finetuning(seed=seed), []
        batch = task.device_images.batch
        task.device_images.batch = lambda asked: seen.append(tuple(asked)) or batch(asked)
        task.loss = lambda images, labels: images.sum()
        list(task.losses(epoch, 0, torch.Generator()))
        return tuple(seen)

    assert rows(0, 0) == rows(0, 0)
    assert len({rows(0, 0), rows(1, 0), rows(0, 1), rows(1, 1)}) == 4


@pytest.mark.parametrize("names", [["flip"], []])
def test_images_are_mirrored_at_random_where_the_recipe_says_so(finetuning, store, names):
    task, seen = finetuning(augmentation=names), []
    batch = task.device_images.batch
    task.device_images.batch = lambda asked: seen.append((asked, [])) or batch(asked)
    task.loss = lambda shown, labels: seen[-1][1].append(shown) or shown.sum()
    list(task.losses(0, 0, torch.Generator().manual_seed(0)))
    mirrored = []
    for rows, (shown,) in seen:
        for image, plain in zip(shown, images(store, rows), strict=True):
            mirrored.append(not torch.allclose(image, plain, atol=1e-5))
            assert torch.allclose(image, plain.flip(2) if mirrored[-1] else plain, atol=1e-5)
    share = sum(mirrored) / len(mirrored)
    assert 0.3 < share < 0.7 if names else share == 0


def test_training_on_episodes_learns_to_tell_new_classes_apart(stage_config, toy, tmp_path):
    stage = stage_config("pretrain", pretraining={"epochs": 1, "learning_rate": 1e-9})
    pretrain.run(stage, toy.data, toy.val, tmp_path / "pretrain.pt", require_gpu=False)
    settings = {"epochs": 5, "episodes_per_epoch": 15, "learning_rate": 0.05}
    out = tmp_path / "finetune-2shot.pt"
    finetune.run(
        stage_config("finetune", finetuning=settings),
        toy.data, toy.val, tmp_path / "pretrain.pt", out, require_gpu=False,
    )  # fmt: skip
    before = json.loads((tmp_path / "pretrain.meta.json").read_text())["best"]["val_accuracy"]
    meta = json.loads((tmp_path / "finetune-2shot.meta.json").read_text())
    after = meta["best"]["val_accuracy"]
    assert meta["image_size"] == 16
    assert before < 0.35
    assert after > 0.5


def test_a_checkpoint_of_other_base_classes_is_refused_with_both_counts(finetuning):
    with pytest.raises(
        UserError, match=r"knows 7 classes, data set toy has 6 base classes; if the"
    ):
        finetuning(classes=7)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (
            {"weight": torch.zeros(6, 5), "scale": torch.ones(())},
            r"net\.pt has `heads: cosine`, and fine-tuning has a linear layer; give",
        ),
        ({}, r"net\.pt knows 0 classes, data set toy has 6 base classes; .* delete it and run"),
        (
            {"weight": torch.zeros(6, 5), "bias": torch.zeros(6)},
            r"net\.pt: its class_head do not fit .*size mismatch for weight: .* delete it and run",
        ),
        (
            {"bias": torch.zeros(6)},
            r"net\.pt: its class_head do not fit .*Missing key.* \"weight\".* delete it and run",
        ),
    ],
)
def test_a_checkpoint_without_a_class_head_that_fits_is_named(
    stage_config, toy, tmp_path, head, said
):
    stage = stage_config("finetune")
    Checkpoint(stage.backbone, state_of(build(stage.backbone)), head).save(tmp_path / "net.pt")
    with pytest.raises(UserError, match=said):
        finetune.run(
            stage, toy.data, toy.val, tmp_path / "net.pt", tmp_path / "x.pt", require_gpu=False
        )
