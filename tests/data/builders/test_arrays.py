"""A user's own `.npz` becomes a store, or the user learns what is wrong with it."""

import numpy as np
import pytest
from packing import provenance
from PIL import Image

from epcore.data.builders.arrays import contents
from epcore.data.contents import ImageClass
from epcore.data.datasets import OwnData, RandomSplit
from epcore.data.sources import Sources
from epcore.data.store import ImageStore, write_store
from epcore.errors import UserError

LABELS = np.array(["cat", "bee", "ant", "cat", "bat", "ant"])
SPLIT = np.array(["base", "novel", "val", "base", "base", "val"])
CLASSES = (
    ImageClass("bat", "base"),
    ImageClass("cat", "base"),
    ImageClass("ant", "val"),
    ImageClass("bee", "novel"),
)
ORDER = [4, 0, 3, 2, 5, 1]  # by split, by name, by row


def pictures(height=8, width=8, channels=(3,), count=6):
    shape = (count, height, width, *channels)
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def file(tmp_path, **instead):
    """The file with some arrays changed; None leaves one out."""
    arrays = {"images": pictures(), "labels": LABELS, "split": SPLIT} | instead
    np.savez(tmp_path / "mine.npz", **{k: a for k, a in arrays.items() if a is not None})
    return tmp_path / "mine.npz"


def built(path, size=8, **settings):
    dataset = OwnData(kind="npz", title="", path=str(path), image_size=size, **settings)
    out = path.parent / "packed"
    write_store(out, contents(dataset, Sources({})), size)
    return ImageStore.open(out)


def refused(path, message, **settings):
    """One line that names the file and never says to delete it; no store is left behind."""
    with pytest.raises(UserError, match=message) as caught:
        built(path, **settings)
    told = str(caught.value)
    assert "\n" not in told
    assert "mine" in told
    assert "delete" not in told
    assert not (path.parent / "packed" / "store.json").exists()


# -- what comes out ----------------------------------------------------------------------------


def test_images_come_out_as_they_went_in_by_split_then_class_then_row(tmp_path):
    store = built(file(tmp_path))
    assert store.classes == CLASSES
    assert store.labels.tolist() == [0, 1, 1, 2, 2, 3]
    assert np.array_equal(store.images, pictures()[ORDER])


def test_gray_becomes_three_equal_channels(tmp_path):
    gray = pictures(channels=())
    store = built(file(tmp_path, images=gray))
    assert np.array_equal(store.images, np.stack([gray[ORDER]] * 3, axis=3))


@pytest.mark.parametrize(
    ("processing", "square"), [("resize", False), ("center-crop", True)], ids=["whole", "square"]
)
@pytest.mark.parametrize("channels", [(3,), ()], ids=["rgb", "gray"])
def test_other_sizes_are_resized_as_pillow_does(tmp_path, processing, square, channels):
    images = pictures(30, 50, channels)
    pixels = {"processing": processing, "filter": "bicubic"}
    store = built(file(tmp_path, images=images), 12, pixels=pixels)
    for row, place in enumerate(ORDER):
        part = images[place][:, 10:40] if square else images[place]
        picture = Image.fromarray(part).convert("RGB")
        expected = np.asarray(picture.resize((12, 12), Image.Resampling.BICUBIC))
        assert np.array_equal(store.images[row], expected)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 20, 100, 3, 11, 100]),
        np.array([3, 20, 100, 3, 11, 100], np.uint8),
        np.array(["3", "20", "100", "3", "11", "100"]),
        np.array([b"3", b"20", b"100", b"3", b"11", b"100"]),
    ],
    ids=["integers", "bytes", "texts", "byte strings"],
)
def test_labels_may_be_whole_numbers_or_texts_and_are_ordered_as_texts(tmp_path, labels):
    store = built(file(tmp_path, labels=labels))
    assert [c.name for c in store.classes] == ["11", "3", "100", "20"]
    assert np.array_equal(store.images, pictures()[ORDER])


def test_names_keep_their_accents(tmp_path):
    labels = np.char.encode(np.where(LABELS == "bee", "Käfer", LABELS), "utf-8")
    assert built(file(tmp_path, labels=labels)).classes[3] == ImageClass("Käfer", "novel")


def test_splits_may_be_byte_strings_and_train_val_test(tmp_path):
    words = np.where(SPLIT == "base", "train", np.where(SPLIT == "novel", "test", SPLIT))
    assert built(file(tmp_path, split=words.astype("S"))).classes == CLASSES


def test_compressed_files_are_read_too(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez_compressed(path, images=pictures(), labels=LABELS, split=SPLIT)
    assert np.array_equal(built(path).images, pictures()[ORDER])


def test_the_store_keeps_the_files_digest(tmp_path):
    import hashlib

    path = file(tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert provenance(built(path)) == {"npz_sha256": digest}


# -- classes drawn from a seed -----------------------------------------------------------------


def numbered():
    labels = np.arange(12) // 2
    return {"images": pictures(count=12), "labels": labels, "split": None}


def drawn(tmp_path, seed, **numbers):
    split = {"base": 3, "val": 1, "novel": 2} | numbers
    return built(file(tmp_path, **numbered()), split=RandomSplit(seed=seed, **split))


def test_a_split_drawn_from_a_seed_has_the_numbers_and_is_the_same_again(tmp_path):
    first = drawn(tmp_path, seed=5)
    assert [c.split for c in first.classes] == ["base"] * 3 + ["val"] + ["novel"] * 2
    assert sorted(c.name for c in first.classes) == list("012345")
    assert drawn(tmp_path, seed=5).classes == first.classes
    assert len({drawn(tmp_path, seed=seed).classes for seed in range(5)}) > 1


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["images", "labels", "split"])
def test_a_missing_array_is_named(tmp_path, name):
    refused(file(tmp_path, **{name: None}), rf"has no array '{name}'; .* images, labels and")


def test_a_missing_file_is_named(tmp_path):
    refused(tmp_path / "mine.npz", r"mine\.npz does not exist; put the file there")


@pytest.mark.parametrize(
    "images",
    [
        pictures().astype(np.float32) / 255,
        pictures().astype(np.int64),
        pictures(channels=(1,)),
        pictures(channels=(4,)),
        pictures().transpose(0, 3, 1, 2),
        pictures()[0, :, :, 0],
        pictures()[None],
    ],
    ids=["floats", "integers", "one channel", "four", "channels first", "one image", "5d"],
)
def test_images_of_another_type_or_shape_are_refused_with_theirs(tmp_path, images):
    message = rf"images must be uint8 of shape .*they are {images.dtype} .*{images.shape[-1]}\)"
    refused(file(tmp_path, images=images), message)


@pytest.mark.parametrize("split", [None, RandomSplit(seed=0, base=3, val=1, novel=2)])
@pytest.mark.parametrize("shape", [(0, 8, 8, 3), (0, 0, 0), (6, 0, 8)])
def test_arrays_without_a_pixel_are_told(tmp_path, shape, split):
    given = {"images": np.zeros(shape, np.uint8), "labels": LABELS[: shape[0]], "split": SPLIT}
    path = file(tmp_path, **given | ({"split": None} if split else {}))
    refused(path, r"images has no pixels, its shape is \(.*; put some in", split=split)


@pytest.mark.parametrize("name", ["labels", "split"])
def test_as_many_labels_and_splits_as_images(tmp_path, name):
    whole = {"labels": LABELS, "split": SPLIT}[name]
    for array in (whole[:-1], np.append(whole, whole[0]), whole[:, None]):
        refused(file(tmp_path, **{name: array}), rf"{name} must have shape \(6,\), as images has")


@pytest.mark.parametrize("name", ["labels", "split"])
def test_labels_and_splits_are_no_broken_numbers_and_no_other_encoding(tmp_path, name):
    for array in (np.linspace(0, 1, 6), np.full(6, np.nan), np.array([b"\xe4"] * 6)):
        refused(file(tmp_path, **{name: array}), f"{name} must be whole numbers or texts")


@pytest.mark.parametrize("name", ["images", "labels", "split"])
def test_arrays_of_objects_are_refused_because_they_could_run_code(tmp_path, name):
    whole = {"images": pictures(), "labels": LABELS, "split": SPLIT}[name]
    refused(file(tmp_path, **{name: whole.astype(object)}), r"cannot be read .*without objects")


def test_a_class_in_two_splits_is_named_with_both(tmp_path):
    split = SPLIT.copy()
    split[3] = "novel"
    with pytest.raises(UserError, match=r"class 'cat' is in base and in novel; .* in one split"):
        built(file(tmp_path, split=split))


@pytest.mark.parametrize("word", ["training", "Base", "", "0"])
def test_an_unknown_split_is_named(tmp_path, word):
    split = np.where(LABELS == "bee", word, SPLIT)
    refused(file(tmp_path, split=split), f"class 'bee' has the split '{word}'; use base, val")


def test_splits_as_numbers_are_refused(tmp_path):
    split = np.array([0, 2, 1, 0, 0, 1])
    refused(file(tmp_path, split=split), "class 'ant' has the split '1'; use base, val")


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.99])
def test_a_truncated_file_is_refused(tmp_path, kept):
    path = file(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    refused(path, r"mine\.npz cannot be read")


def test_one_array_alone_is_no_data_set(tmp_path):
    np.save(tmp_path / "mine.npy", pictures())
    refused(tmp_path / "mine.npy", r"mine\.npy cannot be read")


def test_an_image_that_two_splits_share_is_refused_with_both_rows(tmp_path):
    images = pictures()
    images[1] = images[0]
    with pytest.raises(UserError, match=r"row 0 of .*mine\.npz is also row 1 of .*mine\.npz"):
        built(file(tmp_path, images=images))
