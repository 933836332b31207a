"""Top-5 accuracies against scikit-learn, and who is scored among whom."""

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.metrics import top_k_accuracy_score
from torch.nn import functional

from epcore.generators.base import ClassMeansGenerator, Task
from epcore.generators.config import LwofAverage
from epcore.generators.lwof import LwofGenerator
from epcore.imagenet_fs.classes import Subsets
from epcore.imagenet_fs.exemplars import draw
from epcore.imagenet_fs.trials import Queries, hits, weights_of_trials
from epcore.propagation import DegenerateFeaturesError

CPU = torch.device("cpu")


@pytest.mark.parametrize("seed", range(5))
def test_hits_are_scikit_learns_top_5(seed):
    rng = np.random.default_rng(seed)
    scores, expected = rng.normal(size=(200, 30)), rng.integers(30, size=200)
    found = hits(torch.from_numpy(scores), torch.from_numpy(expected))
    wanted = top_k_accuracy_score(expected, scores, k=5, labels=np.arange(30))
    assert found.double().mean().item() == pytest.approx(wanted)


def test_scores_that_say_nothing_are_no_hits():
    """Equal ones, as of a collapsed network, or no numbers."""
    expected = torch.arange(30)
    for scores in (torch.zeros(30, 30), torch.full((30, 30), torch.nan)):
        assert not hits(scores, expected).any()
    four_as_good = torch.cat([torch.ones(1, 5), torch.zeros(1, 25)], dim=1)
    assert hits(four_as_good, expected[:1]).all()


def test_scores_that_are_no_numbers_are_an_error(queries):
    scored, subsets = queries
    weights = weights_of(subsets, scored.features.shape[1])
    weights[-1, 0] = torch.nan
    with pytest.raises(DegenerateFeaturesError, match="not finite"):
        accuracies(scored, weights, 10.0, 0.7)


@pytest.fixture
def queries(opened):
    subsets = Subsets.of(opened["images"].store, "novel")
    return Queries.of(opened["queries"], subsets, CPU), subsets


def weights_of(subsets, size, seed=0):
    total = len(subsets.base) + len(subsets.novel)
    return torch.randn(total, size, generator=torch.Generator().manual_seed(seed))


def accuracies(scored, weights, scale, prior, factor=1.0):
    """Of a cosine classifier with these weights of all classes."""
    generator = ClassMeansGenerator(weights, torch.tensor(scale))
    return scored.accuracies(scored.scores(generator, weights), prior, factor)


def by_hand(opened, subsets, weights, scale, prior, factor=1):
    """The three accuracies from scores of all classes, masked as the cited code does."""
    store, values = opened["queries"].store, np.asarray(opened["queries"].values, np.float64)
    array = weights.double().numpy()
    unit = array / np.linalg.norm(array, axis=1, keepdims=True)
    scores = scale * (values / np.linalg.norm(values, axis=1, keepdims=True)) @ unit.T
    known = [store.classes[label].group == "base_classes_2" for label in subsets.base]
    valid = np.array([*known, *[True] * len(subsets.novel)])
    novel = np.arange(len(valid)) >= len(subsets.base)
    scores[:, novel] *= factor
    order = [*subsets.base, *subsets.novel]
    expected = np.array([order.index(label) if label in order else -1 for label in store.labels])
    asked = (expected >= 0) & valid[expected]
    of_novel = asked & novel[expected]

    def accuracy(found, chosen, columns):
        masked = np.where(columns, found, -1000)
        every = np.arange(len(valid))
        return top_k_accuracy_score(expected[chosen], masked[chosen], k=5, labels=every)

    probabilities = np.zeros_like(scores)
    probabilities[:, novel] = prior * softmax(scores[:, novel], axis=1)
    base = valid & ~novel
    probabilities[:, base] = (1 - prior) * softmax(scores[:, base], axis=1)
    return {
        "novel": accuracy(scores, of_novel, novel),
        "all": accuracy(scores, asked, valid),
        "all-prior": accuracy(probabilities, asked, valid),
    }


@pytest.mark.parametrize("prior", [0.2, 0.7])
def test_the_three_accuracies_are_those_of_masked_scores_of_all_classes(opened, queries, prior):
    scored, subsets = queries
    weights = weights_of(subsets, opened["images"].values.shape[1])
    found = accuracies(scored, weights, 4.0, prior)
    assert found == pytest.approx(by_hand(opened, subsets, weights, 4.0, prior))
    assert len(set(found.values())) == 3


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.5])
def test_scores_of_novel_classes_are_multiplied_before_they_meet_those_of_base_classes(
    opened, queries, factor
):
    scored, subsets = queries
    weights = weights_of(subsets, opened["images"].values.shape[1])
    found = accuracies(scored, weights, 4.0, 0.4, factor)
    assert found == pytest.approx(by_hand(opened, subsets, weights, 4.0, 0.4, factor))
    assert found["novel"] == accuracies(scored, weights, 4.0, 0.4)["novel"]


def test_a_factor_below_one_takes_places_from_novel_classes_that_match_well(opened, queries):
    """Weights are each class's mean query, so that scores of the right classes are high."""
    scored, subsets = queries
    total = len(subsets.base) + len(subsets.novel)
    sums = torch.zeros(total, scored.features.shape[1])
    sums.index_add_(0, scored.columns[scored.expected], scored.features)
    found = {factor: accuracies(scored, sums, 10.0, 0.7, factor) for factor in (1.0, 0.1)}
    assert found[0.1]["novel"] == found[1.0]["novel"]
    assert found[0.1]["all"] < found[1.0]["all"]


def test_queries_are_those_of_scored_base_and_novel_test_classes(opened, queries):
    scored, _ = queries
    store = opened["queries"].store
    groups = np.array([store.classes[label].group for label in store.labels])
    assert len(scored.features) == np.isin(groups, ["base_classes_2", "novel_classes_2"]).sum()
    assert (scored.expected >= scored.base).sum() == (groups == "novel_classes_2").sum()


def test_weights_of_base_classes_that_are_not_scored_matter_in_no_accuracy(opened, queries):
    scored, subsets = queries
    weights = weights_of(subsets, opened["images"].values.shape[1])
    before = accuracies(scored, weights, 4.0, 0.7)
    others = np.setdiff1d(np.arange(len(subsets.base)), subsets.scored)
    weights[others] = 100.0
    assert accuracies(scored, weights, 4.0, 0.7) == before


def test_a_prior_near_one_ranks_novel_classes_first_and_one_near_zero_last(opened, queries):
    scored, subsets = queries
    weights = weights_of(subsets, opened["images"].values.shape[1])
    of_novel = float((scored.expected >= scored.base).double().mean())
    found = accuracies(scored, weights, 4.0, 1 - 1e-12)
    assert found["all-prior"] == pytest.approx(found["novel"] * of_novel)
    assert accuracies(scored, weights, 4.0, 1e-12)["all-prior"] <= 1 - of_novel


def test_trials_that_are_one_task_keep_their_numbers_and_their_order(opened):
    class Numbers(ClassMeansGenerator):
        trials_at_once = 3

        def forward(self, task, step_size=1.0):
            seen.append(task.trials)
            return super().forward(task, step_size)

    images, seen = opened["images"], []
    drawn = draw(images.store, "novel", 2, 7, seed=0)
    base = len(Subsets.of(images.store, "novel").base)
    given = (torch.randn(base, images.values.shape[1]), torch.tensor(10.0))
    found = list(weights_of_trials(Numbers(*given), images, drawn, base))
    assert seen == [(0, 1, 2), (3, 4, 5), (6,)]
    expected = weights_of_trials(ClassMeansGenerator(*given), images, drawn, base)
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def test_each_trial_has_the_weights_of_its_own_exemplars(opened):
    images = opened["images"]
    drawn = draw(images.store, "novel", 2, 3, seed=0)
    base = len(Subsets.of(images.store, "novel").base)
    settings = LwofAverage(kind="lwof-average")
    generator = LwofGenerator(
        settings, torch.randn(base, images.values.shape[1]), torch.tensor(10.0)
    )
    found = list(weights_of_trials(generator.train(), images, drawn, base))
    assert not generator.training
    assert len(found) == 3
    assert not torch.equal(found[0], found[1])
    for weights, rows in zip(found, drawn.rows, strict=True):
        exemplars = torch.from_numpy(np.array(images.values[rows]))
        expected = functional.normalize(exemplars, dim=-1).mean(dim=1)
        assert torch.allclose(weights[base:], expected)
        with torch.no_grad():
            alone = generator(Task(torch.arange(base)[None], exemplars[None]))
        assert torch.allclose(weights, alone[0])
