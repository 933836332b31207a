"""Images that are there twice are found, told, and refused or left out where splits share them."""

import csv
import json
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packing import pack

from epcore.data.contents import Contents, ImageClass
from epcore.data.repeats import COLUMNS, EXAMPLES, find_repeats
from epcore.data.store import ImageStore, write_store
from epcore.errors import UserError

CLASSES = (
    ImageClass("ant", "base"),
    ImageClass("bee", "base"),
    ImageClass("cat", "val"),
    ImageClass("dog", "novel"),
)
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
NONE = {"in_one_class": 0, "in_two_classes_of_a_split": 0, "in_two_splits": 0}
RANK = {"base": 0, "val": 1, "novel": 2}


def pictures(*repeated):
    """Random images; of each pair of rows the second is given the first one's image."""
    images = np.random.default_rng(0).integers(0, 256, (len(LABELS), 4, 4, 3), np.uint8)
    for row, other in repeated:
        images[other] = images[row]
    return images


def found(images, classes, labels, checksum=zlib.crc32):
    contents = Contents(classes, np.bincount(labels, minlength=len(classes)), ())
    return find_repeats(contents, images, np.array([checksum(image) for image in images]))


def called(row):
    return f"image {row % 3 + 1} of class {CLASSES[row // 3].name!r}"


# -- the report --------------------------------------------------------------------------------


def brute_force(images, classes, labels):
    """By comparing all images with all."""
    counts, shared = dict(NONE), set()
    kinds = [classes[label] for label in labels]
    for row, one in enumerate(kinds):
        equal = [r for r in range(len(images)) if np.array_equal(images[r], images[row])]
        following = [r for r in equal if r > row and kinds[r].split == one.split]
        if following:
            same = kinds[following[0]].name == one.name
            counts["in_one_class" if same else "in_two_classes_of_a_split"] += 1
        if any(RANK[kinds[r].split] > RANK[one.split] for r in equal):
            counts["in_two_splits"] += 1
            shared.add(row)
    return counts, shared


@st.composite
def data_sets(draw):
    splits = draw(st.lists(st.sampled_from(["base", "val", "novel"]), min_size=1, max_size=6))
    classes = [ImageClass(f"class {n}", split) for n, split in enumerate(splits)]
    counts = draw(st.lists(st.integers(1, 5), min_size=len(splits), max_size=len(splits)))
    labels = np.repeat(np.arange(len(splits)), counts)
    values = st.lists(st.sampled_from([0, 1, 2, 255]), min_size=len(labels), max_size=len(labels))
    images = np.zeros((len(labels), 2, 2, 3), np.uint8)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = draw(values), draw(values)
    return images, classes, labels


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data_sets(), st.sampled_from([zlib.crc32, lambda image: 7]))
def test_the_numbers_and_rows_are_those_of_comparing_all_images_with_all(data, checksum):
    """Also where other images have the same checksum."""
    images, classes, labels = data
    repeated = found(images, classes, labels, checksum)
    counts, shared = brute_force(images, classes, labels)
    assert repeated.counts == counts
    assert [row for row, _ in repeated.shared] == sorted(shared)
    for row, other in repeated.shared:
        one, two = classes[labels[row]], classes[labels[other]]
        assert np.array_equal(images[row], images[other])
        assert RANK[one.split] < RANK[two.split]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data_sets())
def test_without_the_first_of_each_pair_no_splits_share_an_image_and_no_picture_is_lost(data):
    images, classes, labels = data
    first = {row for row, _ in found(images, classes, labels).shared}
    left = [row for row in range(len(labels)) if row not in first]
    splits = {}
    for row in left:
        splits.setdefault(images[row].tobytes(), set()).add(classes[labels[row]].split)
    assert all(len(of_picture) == 1 for of_picture in splits.values())
    assert set(splits) == {image.tobytes() for image in images}
    assert {row for row, label in enumerate(labels) if classes[label].split == "novel"} <= set(left)


# -- the store ---------------------------------------------------------------------------------


def written(folder, images, **settings):
    return pack(folder / "animals", CLASSES, LABELS, images, 4, **settings)


def listed(folder):
    """The lines of the file that lists shared images, less its head."""
    with (folder / "animals" / "shared-images.csv").open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    assert head == COLUMNS
    return lines


def line(row, other):
    """The line of two rows that are the same image."""
    kinds = [(called(each), CLASSES[each // 3]) for each in (row, other)]
    return [text for name, kind in kinds for text in (name, kind.name, kind.split)]


def facts(folder):
    text = (folder / "animals" / "store.json").read_text(encoding="utf-8")
    return json.loads(text)["repeated_images"]


KEPT = {"left_out": {"base": 0, "val": 0}, "shared": []}


def test_ones_own_data_may_not_share_an_image_between_splits(tmp_path):
    with pytest.raises(UserError) as caught:
        written(tmp_path, pictures((1, 8), (4, 11)), shared_images="refuse")
    message = str(caught.value)
    file = tmp_path / "animals" / "shared-images.csv"
    assert message.startswith("data set animals: 2 images of base or val are in a later split too")
    for row, other in ((1, 8), (4, 11)):
        assert f"{called(row)} is also {called(other)}" in message
    assert f"; {file} lists all pairs: remove the first of each, or set `shared_images: " in message
    assert "\n" not in message
    assert list((tmp_path / "animals").iterdir()) == [file]
    assert listed(tmp_path) == [line(1, 8), line(4, 11)]


def test_all_pairs_are_in_the_file_and_few_in_the_message(tmp_path):
    labels, classes = np.repeat(np.arange(3), 20), (CLASSES[0], CLASSES[2], CLASSES[3])
    images = np.random.default_rng(0).integers(0, 256, (60, 4, 4, 3), np.uint8)
    images[40:] = images[:20]
    with pytest.raises(UserError, match="20 images of base or val are") as caught:
        pack(tmp_path / "animals", classes, labels, images, 4, shared_images="refuse")
    assert str(caught.value).count(" is also ") == EXAMPLES
    assert [(one, two) for one, _, _, two, _, _ in listed(tmp_path)] == [
        (f"image {n} of class 'ant'", f"image {n} of class 'dog'") for n in range(1, 21)
    ]


def test_images_are_called_as_their_owner_calls_them(tmp_path):
    images = pictures((1, 8))
    contents = Contents(CLASSES, [3] * 4, enumerate(images), name_of=lambda row: f"{row}.png")
    with pytest.raises(UserError, match=r"such as: 1\.png is also 8\.png; "):
        write_store(tmp_path / "animals", contents, 4)
    assert listed(tmp_path) == [["1.png", "ant", "base", "8.png", "cat", "val"]]


def test_the_file_of_an_earlier_build_goes_with_the_last_shared_image(tmp_path):
    with pytest.raises(UserError):
        written(tmp_path, pictures((1, 8)), shared_images="refuse")
    written(tmp_path, pictures(), shared_images="refuse")
    assert not (tmp_path / "animals" / "shared-images.csv").exists()


# Pairs of equal rows -> the rows that are left out.
LEFT = {
    "base and val": ([(1, 8)], [1]),
    "base and novel": ([(4, 9)], [4]),
    "val and novel": ([(6, 11)], [6]),
    "all three": ([(1, 7), (1, 10)], [1, 7]),
    "twice in base, once in val": ([(0, 5), (0, 6)], [0, 5]),
    "once in base, twice in novel": ([(2, 9), (2, 11)], [2]),
    "several": ([(0, 6), (1, 9), (7, 10), (3, 4)], [0, 1, 7]),
    "none": ([(0, 1), (3, 5), (0, 4), (9, 10)], []),
}


@pytest.mark.parametrize("case", LEFT)
def test_the_copy_of_the_later_split_alone_is_kept_if_one_asks_for_it(tmp_path, capsys, case):
    pairs, left = LEFT[case]
    images = pictures(*pairs)
    store = written(tmp_path, images, shared_images="leave-out")
    kept = [row for row in range(len(LABELS)) if row not in left]
    assert np.array_equal(store.pixels(np.arange(len(kept))), images[kept])
    assert store.labels.tolist() == LABELS[kept].tolist()
    assert store.classes == CLASSES
    of_split = {split: sum(CLASSES[row // 3].split == split for row in left) for split in RANK}
    said = facts(tmp_path)
    assert said["left_out"] == {"base": of_split["base"], "val": of_split["val"]}
    assert [pair[0] for pair in said["shared"]] == [called(row) for row in left]
    assert [tuple(cells[:1]) for cells in (listed(tmp_path) if left else [])] == [
        (called(row),) for row in left
    ]
    told = " and ".join(f"{n} of {split}" for split, n in of_split.items() if n)
    assert (f"left out, because a later split has them: {told};" in capsys.readouterr().out) == (
        bool(left)
    )
    assert {path.name for path in store.directory.iterdir()} - {"shared-images.csv"} == {
        "images.npy", "labels.npy", "checksums.npy", "store.json",
    }  # fmt: skip


def test_what_is_left_out_is_the_same_again_and_whatever_order_images_come_in(tmp_path):
    images = pictures((0, 6), (1, 9), (7, 10), (4, 8))
    rows = np.random.default_rng(3).permutation(len(LABELS))
    for name, order in (("first", range(12)), ("second", range(12)), ("third", rows.tolist())):
        contents = Contents(CLASSES, [3] * 4, ((row, images[row]) for row in order))
        write_store(tmp_path / name / "animals", contents, 4, "leave-out")
    for other in ("second", "third"):
        for path in (tmp_path / "first" / "animals").iterdir():
            assert path.read_bytes() == (tmp_path / other / "animals" / path.name).read_bytes()


def test_a_class_all_of_whose_images_a_later_split_has_is_named(tmp_path):
    written(tmp_path, pictures())
    with pytest.raises(UserError, match="class 'bee' has no image; remove it or add some"):
        written(tmp_path, pictures((3, 6), (4, 9), (5, 10)), shared_images="leave-out")
    assert np.array_equal(ImageStore.open(tmp_path / "animals").images, pictures())
    assert not list((tmp_path / "animals").glob(".*"))
    assert len(listed(tmp_path)) == 3


def test_images_repeated_within_a_split_are_told_and_kept(tmp_path, capsys):
    images = pictures((0, 1), (0, 4), (9, 10))
    store = written(tmp_path, images, shared_images="leave-out")
    assert np.array_equal(store.images, images)
    assert capsys.readouterr().out.splitlines() == [
        "data set animals: images that are there twice, in one class: 2",
        "data set animals: images that are there twice, in two classes of a split: 1",
    ]


def test_published_data_that_share_images_between_splits_are_kept_and_told(tmp_path, capsys):
    images = pictures((1, 8), (4, 11))
    store = written(tmp_path, images, shared_images="keep")
    assert np.array_equal(store.images, images)
    out = capsys.readouterr().out.splitlines()
    pairs = [(1, 8), (4, 11)]
    assert out[0] == "data set animals: images that are there twice, in two splits: 2"
    for row, other in pairs:
        assert f"{called(row)} is also {called(other)}" in out[1]
    assert listed(tmp_path) == [line(*pair) for pair in pairs]
    shared = [[called(row), called(other)] for row, other in pairs]
    assert facts(tmp_path) == NONE | KEPT | {"in_two_splits": 2, "shared": shared}


def test_data_without_repeats_say_so_and_print_nothing(tmp_path, capsys):
    written(tmp_path, pictures(), shared_images="refuse")
    assert capsys.readouterr().out == ""
    assert facts(tmp_path) == NONE | KEPT
