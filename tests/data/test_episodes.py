"""Episodes are drawn fairly from the right images, frozen in a file, and never damaged unseen."""

import json

import numpy as np
import pytest
from packing import pack
from scipy import stats

from epcore.data.config import EpisodesConfig
from epcore.data.contents import ImageClass
from epcore.data.episodes import Episodes, Pool, pool_of, run, sample
from epcore.data.store import ImageStore
from epcore.errors import UserError

IMAGES = 9  # of each class
CLASSES = {"base": 4, "val": 3, "novel": 8}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    directory = tmp_path_factory.mktemp("stores") / "tiny"
    classes = [
        ImageClass(f"{split}-{number}", split)
        for split, count in CLASSES.items()
        for number in range(count)
    ]
    labels = np.repeat(np.arange(len(classes)), IMAGES)
    images = (np.full((2, 2, 3), row, dtype=np.uint8) for row in range(len(labels)))
    return pack(directory, classes, labels, images, 2)


def drawn(store, split="novel", way=5, shot=1, queries=3, episodes=50, seed=0, **more):
    return sample(pool_of(store, split), way, shot, queries, episodes, seed, **more)


PARTS = ("support", "query", "unlabeled")


def same(one, other, parts=PARTS):
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in parts)


def of(support, query, unlabeled=None):
    """Episodes of lists; without unlabeled images unless they are given."""
    support, query = np.array(support), np.array(query)
    if unlabeled is None:
        unlabeled = np.empty((*support.shape[:2], 0), np.int64)
    return Episodes(support, query, np.array(unlabeled))


# -- queries that are not spread evenly -------------------------------------------------------


def test_unbalanced_queries_are_as_many_in_all_and_of_the_class_of_their_place(store):
    episodes = drawn(store, way=4, shot=2, queries=3, dirichlet=2)
    there = episodes.query >= 0
    assert (there.sum(axis=(1, 2)) == 4 * 3).all()
    assert len(np.unique(there.sum(axis=2))) > 3
    classes = store.labels[episodes.support][:, :, :1]
    expected = np.broadcast_to(classes, episodes.query.shape)
    np.testing.assert_array_equal(store.labels[episodes.query[there]], expected[there])


def test_unbalanced_episodes_have_classes_and_support_of_the_balanced_ones(store):
    one, other = drawn(store, shot=2, dirichlet=2), drawn(store, shot=2)
    np.testing.assert_array_equal(one.support, other.support)


def test_support_and_unbalanced_queries_share_no_image_and_labels_fit_rows(store):
    episodes = drawn(store, shot=3, queries=3, dirichlet=1)
    images, labels = episodes.images(), episodes.query_labels
    assert images.shape == (50, 5 * (3 + 3))
    assert all(len(set(row)) == len(row) for row in images.tolist())
    queries = images[:, 15:]
    for support, rows, classes in zip(episodes.support, queries, labels, strict=True):
        np.testing.assert_array_equal(store.labels[support[classes, 0]], store.labels[rows])


def test_no_class_has_more_queries_than_images(store):
    """2 of 9 images are left for queries, and 5 x 2 are asked for: each class has both."""
    episodes = drawn(store, shot=7, queries=2, dirichlet=2)
    assert ((episodes.query >= 0).sum(axis=2) == 2).all()


@pytest.mark.slow
def test_shares_are_those_of_the_dirichlet_distribution(tmp_path):
    """Their variance is (1/w)(1 - 1/w) / (w a + 1), rounding's is below 1/(12 n^2)."""
    classes = [ImageClass(f"novel-{number}", "novel") for number in range(3)]
    classes += [ImageClass("base", "base"), ImageClass("val", "val")]
    labels = np.concatenate([np.repeat(np.arange(3), 300), [3, 4]])
    images = (np.frombuffer(np.int64(row).tobytes() + bytes(4), np.uint8) for row in range(902))
    images = (each.reshape(2, 2, 3) for each in images)
    large = pack(tmp_path / "large", classes, labels, images, 2)
    for concentration in (0.5, 2.0, 50.0):
        episodes = drawn(large, way=3, shot=1, queries=90, episodes=2000, dirichlet=concentration)
        shares = (episodes.query >= 0).sum(axis=2) / 270
        np.testing.assert_allclose(shares.mean(axis=0), 1 / 3, atol=0.03)
        expected = (1 / 3) * (2 / 3) / (3 * concentration + 1)
        assert shares.var(axis=0).mean() == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("shares", "counts"),
    [
        ((15.08, 14.92, 25.0, 12.6, 7.4), (15, 15, 25, 13, 7)),
        ((15.4, 14.3, 25.2, 12.1, 8.0), (16, 14, 25, 12, 8)),
        ((0.9, 0.8, 0.7, 0.6, 72.0), (1, 1, 1, 0, 72)),
        ((15.0, 15.0, 15.0, 15.0, 15.0), (15, 15, 15, 15, 15)),
    ],
)
def test_shares_are_rounded_to_all_queries_by_the_largest_remainders(shares, counts):
    class Drawn(np.random.Generator):
        """What a seed may be, too; images are drawn as ever."""

        def dirichlet(self, alpha):
            assert alpha == [2] * 5
            return np.array(shares) / 75

    pool = Pool("tiny", tuple("abcde"), tuple(np.arange(500).reshape(5, 100)))
    episodes = sample(pool, 5, 1, 15, 1, Drawn(np.random.PCG64(0)), dirichlet=2)
    found = (episodes.query >= 0).sum(axis=2)
    assert found.tolist() == [list(counts)]


def test_unbalanced_episodes_survive_their_file(store, tmp_path):
    episodes = drawn(store, dirichlet=2)
    episodes.save(tmp_path / "episodes.npz")
    assert same(Episodes.load(tmp_path / "episodes.npz"), episodes)


def test_episodes_with_other_numbers_of_queries_are_refused():
    with pytest.raises(ValueError, match="as many queries"):
        of([[[0], [1]], [[0], [1]]], [[[2, 3], [4, -1]], [[2, -1], [4, -1]]])


# -- sampling ----------------------------------------------------------------------------------


def test_episodes_have_the_way_shot_and_queries_asked_for(store):
    episodes = drawn(store, way=3, shot=5, queries=4)
    assert len(episodes) == 50
    assert episodes.support.shape == (50, 3, 5)
    assert episodes.query.shape == (50, 3, 4)
    assert episodes.support.dtype == episodes.query.dtype == np.int64


@pytest.mark.parametrize("split", CLASSES)
def test_each_place_of_an_episode_is_one_class_of_the_split_and_no_other_place_has_it(store, split):
    episodes = drawn(store, split, way=3, shot=2)
    support, query = store.labels[episodes.support], store.labels[episodes.query]
    classes = support[:, :, 0]
    assert (support == classes[..., None]).all()
    assert (query == classes[..., None]).all()
    assert {store.classes[label].split for label in classes.flat} == {split}
    assert all(len(set(row)) == 3 for row in classes.tolist())


def test_support_and_query_share_no_image(store):
    episodes = drawn(store, shot=4, queries=5)
    for support, query in zip(episodes.support, episodes.query, strict=True):
        rows = support.ravel().tolist() + query.ravel().tolist()
        assert len(set(rows)) == len(rows) == 5 * IMAGES


def test_images_come_support_first_and_touched_lists_each_once(store):
    episodes = drawn(store, "base", way=2, shot=2, queries=1, episodes=3)
    first = [*episodes.support[0].ravel().tolist(), *episodes.query[0].ravel().tolist()]
    assert episodes.images()[0].tolist() == first
    everything = {*episodes.support.ravel().tolist(), *episodes.query.ravel().tolist()}
    assert episodes.unique_image_indices().tolist() == sorted(everything)


def test_one_seed_gives_the_same_episodes_and_another_seed_others(store):
    assert same(drawn(store, seed=7), drawn(store, seed=7))
    assert not same(drawn(store, seed=7), drawn(store, seed=8))
    assert same(drawn(store, seed=[7, 1]), drawn(store, seed=[7, 1]))
    assert not same(drawn(store, seed=[7, 1]), drawn(store, seed=[7, 2]))


def test_a_longer_run_of_one_seed_starts_with_the_shorter(store):
    short, long = drawn(store, episodes=10), drawn(store, episodes=30)
    assert same(short, of(long.support[:10], long.query[:10]))


def test_every_class_is_drawn_equally_often_at_every_place(store):
    count, way, classes = 4000, 5, CLASSES["novel"]
    chosen = store.labels[drawn(store, way=way, episodes=count).support[:, :, 0]]
    labels = store.class_indices("novel")
    for place in range(way):
        seen = [(chosen[:, place] == label).sum() for label in labels]
        assert 0.001 < stats.chisquare(seen).pvalue < 0.999
    # Classes of one episode exclude each other, which makes the counts over all places steadier
    # than a multinomial's, by this factor.
    seen = np.array([(chosen == label).sum() for label in labels])
    statistic = ((seen - seen.mean()) ** 2).sum() / seen.mean() * (classes - 1) / (classes - way)
    assert 0.001 < stats.chi2.sf(statistic, classes - 1) < 0.999


def test_every_image_of_a_class_is_drawn_equally_often_as_support_and_as_query(store):
    episodes = drawn(store, "val", way=3, shot=1, queries=1, episodes=3000)
    for rows in (episodes.support, episodes.query):
        for label in store.class_indices("val"):
            seen = np.bincount(rows.ravel(), minlength=len(store.labels))[store.labels == label]
            assert seen.sum() == 3000
            assert 0.001 < stats.chisquare(seen).pvalue < 0.999


def test_too_few_classes_are_refused_by_name_of_the_split(store):
    message = "data set tiny, split val: 4-way episodes need 4 classes, there are 3"
    with pytest.raises(UserError, match=message):
        drawn(store, "val", way=4)


def test_too_few_images_are_refused_by_name_of_the_smallest_class(tmp_path):
    classes = [ImageClass(name, name) for name in ("base", "val")]
    classes += [ImageClass("rich", "novel"), ImageClass("poor", "novel")]
    labels = np.repeat(np.arange(4), [4, 4, 4, 3])
    images = [np.zeros((2, 2, 3), np.uint8)] * len(labels)
    pack(tmp_path / "uneven", classes, labels, images, 2)
    uneven = ImageStore.open(tmp_path / "uneven")
    assert len(drawn(uneven, way=2, shot=1, queries=2)) == 50
    message = "uneven, split novel: 1-shot .* 3 queries need 4 images a class, class 'poor' has 3"
    with pytest.raises(UserError, match=message):
        drawn(uneven, way=2, shot=1, queries=3)


# -- unlabeled images -------------------------------------------------------------------------


@pytest.mark.parametrize(("shot", "labeled", "unlabeled"), [(1, None, 5), (4, 2, 0), (3, 1, 2)])
def test_unlabeled_images_are_as_many_as_asked_for_and_of_the_classes_of_their_episode(
    store, shot, labeled, unlabeled
):
    episodes = drawn(store, shot=shot, labeled=labeled, unlabeled=unlabeled)
    kept = labeled or shot
    assert episodes.support.shape == (50, 5, kept)
    assert episodes.query.shape == (50, 5, 3)
    assert episodes.unlabeled.shape == (50, 5, shot - kept + unlabeled)
    assert episodes.unlabeled.dtype == np.int64
    classes = store.labels[episodes.support][:, :, :1]
    assert (store.labels[episodes.query] == classes).all()
    assert (store.labels[episodes.unlabeled] == classes).all()


def test_unlabeled_images_are_neither_support_nor_query_nor_drawn_twice(store):
    """1 + 3 + 5 are all images of a class: each episode has every one of them once."""
    episodes = drawn(store, shot=1, queries=3, unlabeled=5)
    for each in zip(episodes.support, episodes.query, episodes.unlabeled, strict=True):
        for of_class in zip(*each, strict=True):
            rows = np.concatenate(of_class)
            assert sorted(rows) == np.flatnonzero(store.labels == store.labels[rows[0]]).tolist()


def test_unlabeled_images_come_last_and_are_touched(store):
    episodes = drawn(store, way=2, episodes=3, unlabeled=2)
    parts = (episodes.support, episodes.query, episodes.unlabeled)
    assert episodes.images()[1].tolist() == [row for part in parts for row in part[1].ravel()]
    assert set(episodes.unlabeled.ravel()) <= set(episodes.unique_image_indices())
    assert len(episodes.unique_image_indices()) == len(set(episodes.images().ravel()))


@pytest.mark.parametrize("unlabeled", [1, 4])
def test_unlabeled_images_change_neither_support_nor_queries(store, unlabeled):
    plain, helped = drawn(store, shot=2), drawn(store, shot=2, unlabeled=unlabeled)
    assert same(plain, helped, ("support", "query"))
    assert plain.unlabeled.shape == (50, 5, 0)


@pytest.mark.parametrize("labeled", [1, 2, 4])
def test_the_first_support_images_keep_their_labels_and_the_others_become_unlabeled(store, labeled):
    whole, part = drawn(store, shot=5), drawn(store, shot=5, labeled=labeled)
    assert np.array_equal(part.support, whole.support[:, :, :labeled])
    assert np.array_equal(part.unlabeled, whole.support[:, :, labeled:])
    assert same(whole, part, ("query",))


def test_more_unlabeled_images_follow_those_that_lost_their_label(store):
    part = drawn(store, shot=4, labeled=1)
    both = drawn(store, shot=4, labeled=1, unlabeled=2)
    assert same(part, both, ("support", "query"))
    assert np.array_equal(both.unlabeled[:, :, :3], part.unlabeled)
    assert np.array_equal(both.unlabeled[:, :, 3:], drawn(store, shot=4, unlabeled=2).unlabeled)


def test_all_labeled_is_the_same_as_no_labels_taken_away(store):
    assert same(drawn(store, shot=4, labeled=4), drawn(store, shot=4))


def test_every_image_that_is_left_is_drawn_equally_often_as_unlabeled(store):
    """A class has 9 images: 2 are taken, 2 of the other 7 drawn; all classes are in."""
    count, chosen = 3000, 2
    episodes = drawn(store, "val", way=3, shot=1, queries=1, episodes=count, unlabeled=chosen)
    for label in store.class_indices("val"):
        seen = np.bincount(episodes.unlabeled.ravel(), minlength=len(store.labels))
        seen = seen[store.labels == label]
        assert seen.sum() == count * chosen
        # Images of one episode exclude each other, which makes counts steadier than a
        # multinomial's, by this factor.
        factor = (IMAGES - 1) / (IMAGES - chosen)
        statistic = ((seen - seen.mean()) ** 2).sum() / seen.mean() * factor
        assert 0.001 < stats.chi2.sf(statistic, IMAGES - 1) < 0.999
    # And whichever images are taken: those just below and above the support image alike.
    support = episodes.support[:, :, 0]
    after = (episodes.unlabeled - support[..., None]) % IMAGES
    away = np.bincount(after.ravel(), minlength=IMAGES)
    assert away[0] == 0
    assert 0.001 < stats.chisquare(away[1:]).pvalue < 0.999


@pytest.mark.parametrize("unlabeled", [5, 6, 20])
def test_more_unlabeled_images_than_there_are_become_all_that_are_left(store, unlabeled):
    episodes = drawn(store, unlabeled=unlabeled)
    assert episodes.unlabeled.shape == (50, 5, IMAGES - 1 - 3)
    assert np.array_equal(episodes.unlabeled, drawn(store, unlabeled=5).unlabeled)


def test_the_stages_meta_says_how_many_unlabeled_images_a_class_has(store, tmp_path):
    stage = EpisodesConfig(
        stage_version=1, split="novel", way=5, shot=4, queries=3, labeled=2, unlabeled=20,
        episodes=6, seed=0,
    )  # fmt: skip
    run(stage, store.directory, tmp_path / "episodes.npz")
    facts = json.loads((tmp_path / "episodes.meta.json").read_text(encoding="utf-8"))
    assert facts["unlabeled_per_class"] == 4
    assert Episodes.load(tmp_path / "episodes.npz").unlabeled.shape == (6, 5, 4)


def test_without_one_image_left_for_the_unlabeled_ones_it_says_what_to_do(store):
    with pytest.raises(UserError) as caught:
        drawn(store, shot=5, queries=4, unlabeled=3)
    assert str(caught.value) == (
        "data set tiny, split novel: 5-shot episodes with 4 queries and an unlabeled image need 10 "
        f"images a class, class 'novel-0' has {IMAGES}; add images and run "
        "Snakemake again with --forcerun data, or lower `queries` in config/protocols.yaml"
    )


# -- what is an episode ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("support", "query", "message"),
    [
        ([[[0], [1]]], [[[2], [0]]], "an image occurs twice in one episode"),
        ([[[0], [1]], [[4], [5]]], [[[2], [3]], [[6], [5]]], "an image occurs twice"),
        ([[0, 1]], [[2, 3]], r"must have shape \(episodes, way, images\)"),
        ([[[0], [1]]], [[[2]]], "the same episodes and way"),
        ([[[0.0]]], [[[1.0]]], "row numbers: int64"),
        ([[[0]]], [[[-2]]], "row numbers: int64, 0 or more"),
        ([[[0]]], [[[-1]]], "as many queries, one or more"),
    ],
)
def test_what_is_no_episode_is_refused(support, query, message):
    with pytest.raises(ValueError, match=message):
        of(support, query)


@pytest.mark.parametrize(
    ("unlabeled", "message"),
    [
        ([[[0], [5]]], "an image occurs twice in one episode"),
        ([[[4], [3]]], "an image occurs twice in one episode"),
        ([[[4]]], "the same episodes and way"),
        ([[[4], [-5]]], "row numbers: int64, 0 or more"),
    ],
)
def test_unlabeled_images_that_are_no_part_of_an_episode_are_refused(unlabeled, message):
    assert len(of([[[0], [1]]], [[[2], [3]]], [[[4], [5]]])) == 1
    with pytest.raises(ValueError, match=message):
        of([[[0], [1]]], [[[2], [3]]], unlabeled)


def test_two_episodes_may_share_images():
    assert len(of([[[0], [2]], [[1], [3]]], [[[1], [3]], [[0], [2]]])) == 2


# -- the file ----------------------------------------------------------------------------------


def test_saved_episodes_come_back_and_the_same_episodes_make_the_same_bytes(store, tmp_path):
    episodes = drawn(store, unlabeled=2)
    first, second = tmp_path / "first.npz", tmp_path / "folder" / "second.npz"
    episodes.save(first)
    assert same(Episodes.load(first), episodes)
    Episodes.load(first).save(second)
    assert first.read_bytes() == second.read_bytes()
    episodes.save(first)
    assert first.read_bytes() == second.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"first.npz", "folder"}


def refused(path):
    with pytest.raises(UserError, match=r"is damaged .*; delete it|is no episode file") as caught:
        Episodes.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_cut_short_anywhere_is_refused(store, tmp_path):
    path = tmp_path / "episodes.npz"
    drawn(store, way=2, episodes=2, unlabeled=1).save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        refused(path)


def test_a_changed_byte_is_refused_or_changes_nothing(store, tmp_path):
    path = tmp_path / "episodes.npz"
    episodes = drawn(store, way=2, episodes=2, unlabeled=1)
    episodes.save(path)
    whole = path.read_bytes()
    detected = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            assert same(Episodes.load(path), episodes)
        except UserError:
            detected += 1
    assert detected > len(whole) / 2


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "episodes.npz"
    rows = np.arange(4).reshape(1, 2, 2)
    whole = {"support": rows, "query": rows + 4, "unlabeled": rows + 8}
    contents = {
        "overlapping": whole | {"query": rows},
        "without query": {"support": rows, "unlabeled": rows + 8},
        "of an older version": {"support": rows, "query": rows + 4},
        "flat": whole | {"support": rows.ravel(), "query": rows.ravel() + 4},
        "not whole numbers": whole | {"support": rows.astype(float), "query": rows + 4.5},
        "objects": whole | {"support": rows.astype(object)},
    }
    np.savez(path, **whole)
    assert len(Episodes.load(path)) == 1
    for arrays in contents.values():
        np.savez(path, **arrays)
        refused(path)
    with path.open("wb") as file:
        np.save(file, rows)
    refused(path)
    path.write_text("support,query\n1,2\n")
    refused(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"gone\.npz does not exist"):
        Episodes.load(tmp_path / "gone.npz")
