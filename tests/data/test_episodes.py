"""Episodes are drawn fairly from the right images, frozen in a file, and never damaged unseen."""

import numpy as np
import pytest
from packing import pack
from scipy import stats

from epcore.data.contents import ImageClass
from epcore.data.episodes import Episodes, sample
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


def drawn(store, split="novel", way=5, shot=1, queries=3, episodes=50, seed=0):
    return sample(store, split, way, shot, queries, episodes, seed)


def same(one, other):
    return np.array_equal(one.support, other.support) and np.array_equal(one.query, other.query)


# -- sampling ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("way", "shot", "queries"), [(2, 1, 1), (5, 1, 8), (3, 5, 4), (8, 8, 1)])
def test_episodes_have_the_way_shot_and_queries_asked_for(store, way, shot, queries):
    episodes = drawn(store, way=way, shot=shot, queries=queries)
    assert len(episodes) == 50
    assert episodes.support.shape == (50, way, shot)
    assert episodes.query.shape == (50, way, queries)
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
    assert episodes.touched().tolist() == sorted(everything)


def test_one_seed_gives_the_same_episodes_and_another_seed_others(store):
    assert same(drawn(store, seed=7), drawn(store, seed=7))
    assert not same(drawn(store, seed=7), drawn(store, seed=8))
    assert same(drawn(store, seed=[7, 1]), drawn(store, seed=[7, 1]))
    assert not same(drawn(store, seed=[7, 1]), drawn(store, seed=[7, 2]))


def test_a_longer_run_of_one_seed_starts_with_the_shorter(store):
    short, long = drawn(store, episodes=10), drawn(store, episodes=30)
    assert same(short, Episodes(long.support[:10], long.query[:10]))


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
    message = "data set tiny: 4-way episodes need 4 classes, split val has 3"
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
    message = "data set uneven: 1-shot episodes with 3 queries need 4 images .* 'poor' has 3"
    with pytest.raises(UserError, match=message):
        drawn(uneven, way=2, shot=1, queries=3)


# -- what is an episode ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("support", "query", "message"),
    [
        ([[[0], [1]]], [[[2], [0]]], "an image occurs twice in one episode"),
        ([[[0, 0]]], [[[1, 2]]], "an image occurs twice in one episode"),
        ([[[0], [1]], [[4], [5]]], [[[2], [3]], [[6], [5]]], "an image occurs twice"),
        ([[0, 1]], [[2, 3]], r"must have shape \(episodes, way, images\)"),
        ([[[0], [1]]], [[[2]]], "the same episodes and way"),
        ([[[0]]], [[[1]], [[2]]], "the same episodes and way"),
        ([[[0.0]]], [[[1.0]]], "row numbers: int64"),
        ([[[0]]], [[[-1]]], "row numbers: int64, 0 or more"),
    ],
)
def test_what_is_no_episode_is_refused(support, query, message):
    with pytest.raises(ValueError, match=message):
        Episodes(np.array(support), np.array(query))


def test_two_episodes_may_share_images():
    assert len(Episodes(np.array([[[0]], [[1]]]), np.array([[[1]], [[0]]]))) == 2


# -- the file ----------------------------------------------------------------------------------


def test_saved_episodes_come_back_and_the_same_episodes_make_the_same_bytes(store, tmp_path):
    episodes = drawn(store)
    first, second = tmp_path / "first.npz", tmp_path / "folder" / "second.npz"
    episodes.save(first)
    assert same(Episodes.load(first), episodes)
    Episodes.load(first).save(second)
    assert first.read_bytes() == second.read_bytes()
    episodes.save(first)
    assert first.read_bytes() == second.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"first.npz", "folder"}


def refused(path):
    with pytest.raises(UserError, match=r"is damaged .*; delete it") as caught:
        Episodes.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_cut_short_anywhere_is_refused(store, tmp_path):
    path = tmp_path / "episodes.npz"
    drawn(store, way=2, episodes=2).save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        refused(path)


def test_a_changed_byte_is_refused_or_changes_nothing(store, tmp_path):
    path = tmp_path / "episodes.npz"
    episodes = drawn(store, way=2, episodes=2)
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
    contents = {
        "overlapping": {"support": rows, "query": rows},
        "without query": {"support": rows},
        "flat": {"support": rows.ravel(), "query": rows.ravel() + 4},
        "not whole numbers": {"support": rows.astype(float), "query": rows + 4.5},
        "objects": {"support": rows.astype(object), "query": rows + 4},
    }
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
