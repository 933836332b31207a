"""On a GPU: numbers are those of the CPU, and networks are trained there."""

import json

import pytest
import torch
from figure_files import lines_of
from plans import plan_of

from epcore.classifiers import CLASSIFIERS, FewShotClassifier, Prototypes, load_classifier
from epcore.classifiers.episodes import EpisodeBatch
from epcore.data.episodes import Episodes
from epcore.data.store import ImageStore
from epcore.propagation import EmbeddingPropagation, LabelPropagation
from epcore.training import finetune, pretrain
from epcore.training.pretrain import PretrainingTask

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

WAY, SHOT, QUERIES, SIZE = 5, 2, 20, 16
FEWER = {name: {"steps": 50} for name in ("transmatch-head", "tim", "alpha-tim")}


def points_of(dtype):
    """Three episodes: images around the centers of their classes, none with negative features."""
    random = torch.Generator().manual_seed(0)
    labels = torch.cat([torch.arange(WAY).repeat_interleave(SHOT), torch.arange(QUERIES) % WAY])
    centers = torch.rand(3, WAY, SIZE, generator=random, dtype=dtype)
    noise = torch.randn(3, len(labels), SIZE, generator=random, dtype=dtype)
    return (1 + 2 * centers[:, labels] + 0.3 * noise).relu(), labels


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layers_have_the_cpus_numbers(dtype):
    points, labels = points_of(dtype)
    known = torch.where(torch.arange(len(labels)) < WAY * SHOT, labels, -1).expand(3, -1)
    near = {"atol": 1e-5 if dtype == torch.float32 else 1e-10, "rtol": 1e-4}
    found = EmbeddingPropagation()(points.cuda())
    assert torch.allclose(found.cpu().double(), EmbeddingPropagation()(points.double()), **near)
    found = LabelPropagation()(points.cuda(), known.cuda())
    assert torch.allclose(found.cpu().double(), LabelPropagation()(points.double(), known), **near)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_have_the_cpus_scores(name):
    shared = plan_of("demo").registry.recipes.resolve("epnet", "conv4").propagation
    classifier = load_classifier({"name": name, **FEWER.get(name, {})}, dict(shared), "here")
    points, _ = points_of(torch.float64)
    random = torch.Generator().manual_seed(1)
    mean = torch.full((SIZE,), 1.9, dtype=torch.float64)
    weights = torch.randn(7, SIZE, generator=random, dtype=torch.float64)
    numbers = torch.arange(3)
    here = EpisodeBatch(points, WAY, SHOT, QUERIES, mean, weights, numbers)
    given = (each.cuda() for each in (points, mean, weights, numbers))
    there = EpisodeBatch(next(given), WAY, SHOT, QUERIES, *given)
    found = classifier.scores(there).cpu()
    assert torch.allclose(found, classifier.scores(here), atol=1e-6, rtol=1e-5)


def test_fit_and_predict():
    points, labels = points_of(torch.float32)
    support, queries = points[0, : WAY * SHOT].cuda(), points[0, WAY * SHOT :].cuda()
    names = [f"class {label}" for label in labels[: WAY * SHOT]]
    few = FewShotClassifier(Prototypes(), propagate=EmbeddingPropagation()).fit(support, names)
    found = few.predict_proba(queries)
    near = few.fit(support.cpu(), names).predict_proba(queries.cpu())
    assert torch.allclose(torch.as_tensor(found).cpu(), torch.as_tensor(near), atol=1e-4)


def test_a_loss_and_its_gradient_are_the_cpus(stage_config, toy):
    store, episodes = ImageStore.open(toy.data), Episodes.load(toy.val)
    said = stage_config("pretrain", "epnet", pretraining={"batch_size": 24})
    values = []
    for place in ("cpu", "cuda"):
        task = PretrainingTask(said, store, episodes, torch.device(place))
        task.model.train()
        loss = next(iter(task.losses(0, 0, torch.Generator().manual_seed(0))))
        loss.backward()
        gradients = [each.grad.cpu().flatten() for each in task.model.parameters()]
        values.append((loss.item(), torch.cat(gradients)))
    (expected, there), (found, here) = values
    assert found == pytest.approx(expected, rel=1e-4)
    assert torch.allclose(here, there, atol=1e-3 * there.abs().max().item())


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_both_phases_train_and_say_where(stage_config, toy, tmp_path, precision):
    first, second = tmp_path / "pretrain.pt", tmp_path / "finetune-2shot.pt"
    said = stage_config(
        "pretrain", "epnet", precision=precision, pretraining={"epochs": 12, "batch_size": 24}
    )
    pretrain.run(said, toy.data, toy.val, first, require_gpu=True)
    said = stage_config("finetune", "epnet", precision=precision)
    finetune.run(said, toy.data, toy.val, first, second, require_gpu=True)
    facts = json.loads(second.with_suffix(".meta.json").read_text(encoding="utf-8"))
    assert facts["device"] == torch.cuda.get_device_name()
    assert facts["precision"] == precision
    accuracies = [float(row["val_accuracy"]) for row in lines_of(first.with_suffix(".csv"))]
    assert max(accuracies) > 0.5
