"""Images that are there twice are found, told, and in one's own data not shared by splits."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packing import pack

from epcore.data.contents import Contents, ImageClass
from epcore.data.repeats import EXAMPLES, Repeats
from epcore.data.store import ImageStore, write_store
from epcore.errors import UserError

CLASSES = (
    ImageClass("ant", "base"),
    ImageClass("bee", "base"),
    ImageClass("cat", "val"),
    ImageClass("dog", "novel"),
)
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
NONE = {"in_one_class": 0, "in_two_classes_of_a_split": 0, "in_two_splits": 0, "examples": []}


def pictures(*repeated):
    """Random images; of each pair of rows the second is given the first one's image."""
    images = np.random.default_rng(0).integers(0, 256, (len(LABELS), 4, 4, 3), np.uint8)
    for row, other in repeated:
        images[other] = images[row]
    return images


def report(images, classes=CLASSES, labels=LABELS, order=None):
    size = images.shape[1]
    repeats = Repeats(Contents(classes, labels, (), size, {}))
    for row in range(len(labels)) if order is None else order:
        repeats.add(row, images[row])
    return repeats.report()


def called(row):
    return f"image {row % 3 + 1} of class {CLASSES[row // 3].name!r}"


# -- the report --------------------------------------------------------------------------------


def test_images_that_differ_are_not_repeated():
    assert report(pictures()) == NONE


@pytest.mark.parametrize(
    ("pair", "kind"),
    [
        ((0, 2), "in_one_class"),
        ((9, 10), "in_one_class"),
        ((0, 3), "in_two_classes_of_a_split"),
        ((2, 5), "in_two_classes_of_a_split"),
        ((5, 6), "in_two_splits"),
        ((0, 11), "in_two_splits"),
        ((7, 9), "in_two_splits"),
    ],
)
def test_a_repeated_image_is_counted_by_where_its_two_places_are(pair, kind):
    examples = [[called(row) for row in pair]] if kind == "in_two_splits" else []
    assert report(pictures(pair)) == NONE | {kind: 1, "examples": examples}


def test_an_image_that_is_there_three_times_counts_twice():
    found = report(pictures((0, 1), (0, 2)))
    assert found == NONE | {"in_one_class": 2}
    found = report(pictures((0, 4), (0, 10)))
    assert (found["in_two_classes_of_a_split"], found["in_two_splits"]) == (1, 1)
    assert found["examples"] == [[called(4), called(10)]]


def test_an_image_of_two_splits_is_found_whatever_lies_between():
    """Base, val, base again: classes of a split need not stand together."""
    classes = [ImageClass("a", "base"), ImageClass("b", "val"), ImageClass("c", "base")]
    images = np.repeat(pictures()[:1], 3, axis=0)
    assert report(images, classes, np.array([0, 1, 2]))["in_two_splits"] == 2


def test_the_order_in_which_images_come_does_not_matter():
    images = pictures((0, 4), (0, 10), (6, 9), (1, 2))
    orders = [np.random.default_rng(seed).permutation(len(LABELS)) for seed in range(5)]
    assert all(report(images, order=order) == report(images) for order in orders)


def test_no_more_than_ten_examples_are_named():
    labels = np.repeat(np.arange(3), 20)
    classes = (CLASSES[0], CLASSES[2], CLASSES[3])
    images = np.random.default_rng(0).integers(0, 256, (60, 4, 4, 3), np.uint8)
    images[20:40] = images[:20]
    found = report(images, classes, labels)
    assert found["in_two_splits"] == 20
    assert len(found["examples"]) == EXAMPLES == 10


@pytest.mark.parametrize("tail", range(1, 48))
def test_images_that_differ_only_before_a_tail_of_zeros_are_not_mixed_up(tail):
    images = np.zeros((3, 4, 4, 3), np.uint8)
    for number, image in enumerate(images):
        image.reshape(-1)[: 48 - tail] = number
    assert report(images, CLASSES, np.array([0, 2, 3])) == NONE


def test_images_without_light_are_equal_only_to_each_other():
    images = pictures()
    images[0] = images[6] = 0
    images[1, 0, 0, 0], images[1].reshape(-1)[1:] = 1, 0
    assert report(images) == NONE | {"in_two_splits": 1, "examples": [[called(0), called(6)]]}


def test_thousands_of_images_of_three_bytes_are_told_apart():
    numbers = np.arange(5000, dtype=np.uint32).view(np.uint8).reshape(5000, 1, 4)[:, :, :3]
    images = numbers.reshape(5000, 1, 1, 3)
    labels = np.arange(5000) * 3 // 5000
    found = report(images, (CLASSES[0], CLASSES[2], CLASSES[3]), labels)
    assert found == NONE


def brute_force(images, classes, labels):
    """Each image with the next one that equals it, by comparing all."""
    counts = {"in_one_class": 0, "in_two_classes_of_a_split": 0, "in_two_splits": 0}
    for row in range(len(images)):
        for other in range(row + 1, len(images)):
            if np.array_equal(images[row], images[other]):
                one, two = classes[labels[row]], classes[labels[other]]
                if one.split != two.split:
                    counts["in_two_splits"] += 1
                elif one.name != two.name:
                    counts["in_two_classes_of_a_split"] += 1
                else:
                    counts["in_one_class"] += 1
                break
    return counts


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_the_numbers_are_those_of_comparing_all_images_with_all(data):
    splits = data.draw(st.lists(st.sampled_from(["base", "val", "novel"]), min_size=1, max_size=6))
    classes = [ImageClass(f"class {n}", split) for n, split in enumerate(splits)]
    counts = data.draw(st.lists(st.integers(1, 5), min_size=len(splits), max_size=len(splits)))
    labels = np.repeat(np.arange(len(splits)), counts)
    values = st.lists(st.sampled_from([0, 1, 2, 255]), min_size=len(labels), max_size=len(labels))
    images = np.zeros((len(labels), 2, 2, 3), np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = data.draw(values), data.draw(values)
    found = report(images, classes, labels)
    names = found.pop("examples")
    assert found == brute_force(images, classes, labels)
    assert len(names) == min(found["in_two_splits"], EXAMPLES)


# -- the store ---------------------------------------------------------------------------------


def written(folder, images, **settings):
    return pack(folder / "animals", CLASSES, LABELS, images, 4, **settings)


def test_ones_own_data_may_not_share_an_image_between_splits(tmp_path):
    with pytest.raises(UserError) as caught:
        written(tmp_path, pictures((1, 8), (4, 11)), published=False)
    message = str(caught.value)
    assert message.startswith("data set animals: base, val and novel share 2 images")
    for row, other in ((1, 8), (4, 11)):
        assert f"{called(row)} is also {called(other)}" in message
    assert message.endswith("; remove one of each pair")
    assert "\n" not in message
    assert list((tmp_path / "animals").iterdir()) == []


def test_images_are_called_as_their_owner_calls_them(tmp_path):
    images = pictures((1, 8))
    contents = Contents(CLASSES, LABELS, enumerate(images), 4, {}, name_of=lambda row: f"{row}.png")
    with pytest.raises(UserError, match=r"pixel by pixel: 1\.png is also 8\.png; remove"):
        write_store(tmp_path / "animals", contents)


def test_a_refused_rewrite_leaves_the_old_store_whole(tmp_path):
    written(tmp_path, pictures(), published=False)
    with pytest.raises(UserError):
        written(tmp_path, pictures((1, 8)), published=False)
    assert np.array_equal(ImageStore.open(tmp_path / "animals").images, pictures())


@pytest.mark.parametrize("published", [True, False])
def test_images_repeated_within_a_split_are_told_and_kept(tmp_path, capsys, published):
    images = pictures((0, 1), (0, 4), (9, 10))
    store = written(tmp_path, images, published=published)
    assert np.array_equal(store.images, images)
    assert capsys.readouterr().out.splitlines() == [
        "data set animals: images that are there twice, in one class: 2",
        "data set animals: images that are there twice, in two classes of a split: 1",
    ]


def test_published_data_that_share_images_between_splits_are_kept_and_told(tmp_path, capsys):
    images = pictures((1, 8), (4, 11))
    store = written(tmp_path, images, published=True)
    assert np.array_equal(store.images, images)
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "data set animals: images that are there twice, in two splits: 2"
    for row, other in ((1, 8), (4, 11)):
        assert f"{called(row)} is also {called(other)}" in out[1]
    facts = json.loads((tmp_path / "animals" / "store.json").read_text(encoding="utf-8"))
    pairs = facts["repeated_images"].pop("examples")
    assert facts["repeated_images"] == {
        "in_one_class": 0,
        "in_two_classes_of_a_split": 0,
        "in_two_splits": 2,
    }
    expected = [[called(row), called(other)] for row, other in ((1, 8), (4, 11))]
    assert sorted(pairs) == sorted(expected)


def test_data_without_repeats_say_so_and_print_nothing(tmp_path, capsys):
    written(tmp_path, pictures(), published=False)
    assert capsys.readouterr().out == ""
    facts = json.loads((tmp_path / "animals" / "store.json").read_text(encoding="utf-8"))
    assert facts["repeated_images"] == NONE
