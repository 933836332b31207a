"""Frozen exemplars: reproducible, without repeats, of the right classes; unfit stores are told."""

import numpy as np
import pytest
from packing import pack

from epcore.errors import UserError
from epcore.imagenet_fs.classes import Subsets, check_pair
from epcore.imagenet_fs.config import ExemplarsConfig
from epcore.imagenet_fs.exemplars import Exemplars, draw, run

STAGE = ExemplarsConfig(stage_version=1, shots=(1, 2, 5), trials={"val": 3, "novel": 4}, seed=0)


@pytest.mark.parametrize("split", ["val", "novel"])
def test_exemplars_are_different_images_of_their_class(stores, split):
    store = stores["images"]
    drawn = draw(store, split, 5, 40, seed=0)
    assert drawn.rows.shape == (40, len(store.class_indices(split)), 5)
    assert (store.labels[drawn.rows] == drawn.labels[None, :, None]).all()
    assert (np.diff(np.sort(drawn.rows, axis=2), axis=2) > 0).all()
    assert len(np.unique(drawn.rows)) == 12 * len(drawn.labels)  # every image has its turn


def test_the_same_seed_draws_the_same_and_others_do_not(stores):
    store = stores["images"]
    first = draw(store, "novel", 5, 4, seed=0).rows
    assert np.array_equal(first, draw(store, "novel", 5, 4, seed=0).rows)
    assert np.array_equal(first, draw(store, "novel", 5, 9, seed=0).rows[:4])
    assert not np.array_equal(first, draw(store, "novel", 5, 4, seed=1).rows)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[:, :, :2], draw(store, "novel", 2, 4, seed=0).rows)


def test_a_file_for_each_split_and_shot_is_the_same_to_the_byte(stores, tmp_path):
    for out in (tmp_path / "one", tmp_path / "two"):
        run(STAGE, stores["images"].directory, stores["queries"].directory, out)
    files = sorted(path.name for path in (tmp_path / "one").glob("*.npz"))
    assert files == sorted(f"{s}-{k}shot.npz" for s in ("val", "novel") for k in (1, 2, 5))
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    novel = stores["images"], "novel", 5
    rows = Exemplars.load(tmp_path / "one/novel-5shot.npz", *novel).rows
    assert np.array_equal(rows, draw(stores["images"], "novel", 5, 4, seed=0).rows)
    with pytest.raises(UserError, match="of other classes than the data set"):
        Exemplars.load(tmp_path / "one/val-5shot.npz", *novel)


def test_subsets_are_those_of_the_groups(stores):
    store = stores["images"]
    for split, group, count in (("val", "base_classes_1", 14), ("novel", "base_classes_2", 12)):
        subsets = Subsets.of(store, split)
        assert len(subsets.base) == 26
        scored = {store.classes[label].group for label in subsets.base[subsets.scored]}
        assert (scored, len(subsets.scored)) == ({group}, count)


def changed(store, folder, classes=None, images=4):
    """A store like it, with other classes or fewer images."""
    classes = classes or store.classes
    labels = np.repeat(np.arange(len(classes)), images)
    pixels = np.random.default_rng(0).integers(0, 256, (len(labels), 8, 8, 3), np.uint8)
    return pack(folder, classes, labels, pixels, 8)


def test_stores_of_different_classes_or_readings_are_refused_by_the_first_class(stores, tmp_path):
    images = stores["images"]
    renamed = [*images.classes[:3], type(images.classes[0])("other", "base"), *images.classes[4:]]
    with pytest.raises(UserError, match=r"has the class 'n0003'.*where renamed has 'other'"):
        check_pair(images, changed(images, tmp_path / "renamed", renamed), 1)
    with pytest.raises(UserError, match="46 classes, few 45; build both"):
        check_pair(images, changed(images, tmp_path / "few", images.classes[:-1]), 1)


def test_a_class_with_too_few_images_is_named(stores, tmp_path):
    store = changed(stores["images"], tmp_path / "small")
    first = next(c.name for c in store.classes if c.split != "base")
    with pytest.raises(UserError, match=rf"class '{first}' has 4 images, 5 are needed"):
        check_pair(store, stores["queries"], 5)


def test_a_data_set_without_the_benchmarks_groups_is_refused(toy):
    from epcore.data.store import ImageStore

    with pytest.raises(UserError, match=r"toy is not made for ImageNet-FS.*base_classes_1"):
        Subsets.of(ImageStore.open(toy.data), "val")
