"""What holds for every classifier: those of all files in epcore/classifiers."""

from dataclasses import replace

import pytest
import torch
from episode_batches import batch_of
from plans import plan_of
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from epcore.classifiers import CLASSIFIERS, load_classifier

WAY, QUERIES, UNLABELED, SIZE = 4, 12, 8, 6


# So that tests take seconds.
FEWER = {name: {"steps": 150} for name in ("transmatch-head", "tim", "alpha-tim")}
ALONE = (0, 1, 7, 14, 15)  # of sixteen episodes


def loaded(name):
    """With its default settings, and those of the authors' code that it shares with others."""
    settings = plan_of("demo").registry.recipes.resolve("epnet", "conv4").propagation
    classifier = {"name": name, **FEWER.get(name, {})}
    return load_classifier(classifier, dict(settings), "here")


ALL = {name: loaded(name) for name in CLASSIFIERS}
TAKING_UNLABELED = [each for each in ALL.values() if each.needs.unlabeled]
TAKING_NONE = [each for each in ALL.values() if not each.needs.unlabeled]


@pytest.fixture(params=ALL)
def classifier(request):
    return ALL[request.param]


@pytest.fixture(params=[1, 3])
def shot(request):
    return request.param


def drawn(shot, spread, count=5, unlabeled=0, size=SIZE, distance=2):
    """Episodes with features that are not negative, and the classes of the queries.

    Images lie around the centers of their classes, the same number of queries around each.
    """
    random = torch.Generator().manual_seed(shot)
    classes = [torch.arange(WAY).repeat_interleave(shot)]
    classes += [torch.arange(number) % WAY for number in (QUERIES, unlabeled)]
    labels = torch.cat(classes)
    centers = torch.rand((count, WAY, size), generator=random, dtype=torch.float64)
    noise = torch.randn((count, len(labels), size), generator=random, dtype=torch.float64)
    points = (1 + distance * centers[:, labels] + spread * noise).relu()
    base_mean = torch.full((size,), 1 + distance / 2 - 0.1, dtype=torch.float64)
    base_weights = torch.randn((7, size), generator=random, dtype=torch.float64)
    numbers = torch.arange(100, 100 + count)
    episodes = batch_of(points, WAY, shot, QUERIES, base_mean, base_weights, numbers)
    return episodes, classes[1]


def reordered(episodes, first, order):
    """The images from `first` on in another order."""
    points = episodes.points.clone()
    points[:, first : first + len(order)] = points[:, first + torch.as_tensor(order)]
    return replace(episodes, points=points)


def close(one, other):
    torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)


def test_queries_in_another_order_have_their_scores_in_that_order(classifier, shot):
    episodes, _ = drawn(shot, 0.5)
    order = torch.randperm(QUERIES, generator=torch.Generator().manual_seed(0))
    turned = reordered(episodes, WAY * shot, order)
    close(classifier.scores(turned), classifier.scores(episodes)[:, order])


def test_classes_in_another_order_have_their_scores_in_that_order(classifier, shot):
    episodes, _ = drawn(shot, 0.5)
    order = torch.tensor([2, 0, 3, 1])
    rows = torch.arange(WAY * shot).reshape(WAY, shot)[order].flatten()
    turned = reordered(episodes, 0, rows)
    close(classifier.scores(turned), classifier.scores(episodes)[..., order])


def test_the_order_of_a_classs_support_does_not_matter(classifier):
    episodes, _ = drawn(3, 0.5)
    turned = reordered(episodes, 0, [2, 0, 1])
    close(classifier.scores(turned), classifier.scores(episodes))


def test_an_episode_is_scored_as_if_it_were_alone(classifier):
    """In a batch of 16, as a batch of one, and without the dimension of a batch."""
    episodes, _ = drawn(3, 0.5, count=16)
    together = classifier.scores(episodes)
    for each in ALONE:
        points, number, scores = episodes.points[each], episodes.numbers[each], together[each]
        batch = replace(episodes, points=points[None], numbers=number[None])
        close(classifier.scores(batch)[0], scores)
    single = replace(episodes, points=points, numbers=number)
    close(classifier.scores(single), scores)


def together_and_alone(classifier, episodes):
    """Scores of all queries at once, and of each without the others."""
    support, unlabeled = episodes.support, episodes.unlabeled_points
    alone = [
        classifier.scores(
            replace(
                episodes, points=torch.cat([support, query[:, None], unlabeled], dim=1), queries=1
            )
        )
        for query in episodes.query.unbind(dim=1)
    ]
    return classifier.scores(episodes), torch.cat(alone, dim=1)


def test_a_query_alone_has_other_scores_only_if_that_is_declared(classifier, shot):
    together, alone = together_and_alone(classifier, drawn(shot, 0.5)[0])
    same = torch.allclose(alone, together, rtol=1e-6, atol=1e-8)
    assert same != classifier.transductive


@pytest.mark.parametrize("classifier", TAKING_UNLABELED, ids=lambda each: each.name)
def test_so_it_is_with_unlabeled_images(classifier):
    together, alone = together_and_alone(classifier, drawn(3, 0.5, unlabeled=UNLABELED)[0])
    same = torch.allclose(alone, together, rtol=1e-6, atol=1e-8)
    assert same == classifier.needs.instead_of_queries


@pytest.mark.parametrize("classifier", TAKING_NONE, ids=lambda each: each.name)
def test_unlabeled_images_are_refused_unless_they_are_taken(classifier):
    with pytest.raises(ValueError, match="takes no unlabeled images"):
        classifier.scores(drawn(1, 0.5, unlabeled=UNLABELED)[0])


@pytest.mark.parametrize("classifier", TAKING_UNLABELED, ids=lambda each: each.name)
def test_unlabeled_images_have_a_say_in_any_order(classifier):
    episodes, _ = drawn(3, 0.5, unlabeled=UNLABELED)
    scores = classifier.scores(episodes)
    turned = reordered(episodes, WAY * 3 + QUERIES, range(UNLABELED - 1, -1, -1))
    close(classifier.scores(turned), scores)
    without = classifier.scores(
        replace(episodes, points=episodes.points[:, :-UNLABELED], unlabeled=0)
    )
    assert not torch.allclose(without, scores, rtol=1e-3)


def test_a_class_may_have_no_query(classifier):
    """As in Dirichlet episodes. Who assumes no balance then still tells classes apart."""
    episodes, expected = drawn(3, 0.01, 20, size=256, distance=20)
    others = torch.nonzero(expected != 2).flatten()
    rows = torch.cat([torch.arange(WAY * 3), WAY * 3 + others])
    scores = classifier.scores(
        replace(episodes, points=episodes.points[:, rows], queries=len(others))
    )
    assert scores.shape == (20, len(others), WAY)
    assert torch.isfinite(scores).all()
    if not classifier.balanced:
        assert (scores.argmax(dim=-1) == expected[others]).all()


@pytest.mark.parametrize("queries", [1, 2])
def test_queries_may_all_be_of_one_class(classifier, queries):
    episodes, expected = drawn(1, 0.01, 20, size=256, distance=20)
    rows = torch.cat([torch.arange(WAY), WAY + torch.nonzero(expected == 1).flatten()[:queries]])
    scores = classifier.scores(replace(episodes, points=episodes.points[:, rows], queries=queries))
    assert torch.isfinite(scores).all()
    if not classifier.balanced:
        assert (scores.argmax(dim=-1) == 1).all()


@pytest.mark.parametrize(
    "classifier",
    [each for each in TAKING_UNLABELED if each.needs.instead_of_queries],
    ids=lambda each: each.name,
)
def test_without_unlabeled_images_the_queries_take_their_place(classifier):
    episodes, _ = drawn(3, 0.5)
    twice = torch.cat([episodes.points, episodes.query], dim=-2)
    copied = replace(episodes, points=twice, unlabeled=QUERIES)
    close(classifier.scores(copied), classifier.scores(episodes))


def test_classes_far_apart_are_told_apart(classifier, shot):
    for unlabeled in (0, UNLABELED) if classifier.needs.unlabeled else (0,):
        # So far apart that the published rates and penalties, of larger features, tell them.
        episodes, expected = drawn(shot, 0.01, 20, unlabeled, size=256, distance=20)
        assert (classifier.scores(episodes).argmax(dim=-1) == expected).all()


@pytest.mark.slow
def test_features_that_say_nothing_give_chance(classifier):
    episodes, expected = drawn(3, 1, count=400)
    random = torch.Generator().manual_seed(1)
    noise = torch.rand(episodes.points.shape, generator=random, dtype=torch.float64)
    scores = classifier.scores(replace(episodes, points=noise))
    right = (scores.argmax(dim=-1) == expected).double().mean().item()
    assert right == pytest.approx(1 / WAY, abs=0.03)


def test_the_same_episodes_have_the_same_scores_to_the_bit(classifier):
    episodes, _ = drawn(3, 0.5)
    scores = classifier.scores(episodes)
    torch.rand(1)  # whatever the state of torch's own generator
    assert torch.equal(classifier.scores(episodes), scores)


def test_scores_are_of_the_type_of_the_features(classifier):
    episodes, _ = drawn(3, 0.5)
    single = replace(episodes, points=episodes.points.float())
    scores = classifier.scores(single)
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores.double(), classifier.scores(episodes), rtol=1e-3, atol=1e-3)


class Largest(TorchDispatchMode):
    """The number of bytes of the largest tensor that any operation returns."""

    bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                self.bytes = max(self.bytes, tensor.untyped_storage().nbytes())
        return out


def test_no_tensor_has_a_vector_for_each_pair_of_images(classifier):
    """As the authors' code of many methods has: N x N x D numbers an episode."""
    episodes, _ = drawn(3, 0.1, size=48)
    count, images, size = episodes.points.shape
    with Largest() as largest:
        classifier.scores(episodes)
    whole = count * images * images * size * episodes.points.element_size()
    assert 0 < largest.bytes < whole / 2
