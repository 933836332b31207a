"""The split files that others published are those that the project and its tests take them for.

Needs these files in the folder that EPCORE_MIRROR names; nothing is downloaded.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from epcore.data.builders.imagenet_fs import SUBSETS, read_subsets
from epcore.data.builders.mini_imagenet import read_ranks
from epcore.data.builders.tiered_imagenet import read_pairs
from epcore.plan.registry import read_datasets

CONFIG = Path(__file__).parents[2] / "config"
SETTINGS = read_datasets(CONFIG)
SPLITS = ("base", "val", "novel")

pytestmark = pytest.mark.skipif(
    not os.environ.get("EPCORE_MIRROR"), reason="EPCORE_MIRROR names no folder of split files"
)


def published(path):
    """A file of the mirror."""
    found = Path(os.environ["EPCORE_MIRROR"]) / path
    if not found.is_file():
        pytest.skip(f"{found} is not there")
    return found


def lists(source):
    """The file of each split."""
    files = SETTINGS.sources[source].files
    return {key: published(files[key].path) for key in SPLITS}


def overlapping(groups):
    """Whether two of the collections have something in common."""
    return sum(map(len, map(set, groups))) != len(set().union(*groups))


# -- mini-ImageNet -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranks():
    return {split: read_ranks(path) for split, path in lists("mini-imagenet-split").items()}


def test_mini_imagenet_has_64_16_and_20_classes_of_600_images(ranks):
    assert {split: len(classes) for split, classes in ranks.items()} == {
        "base": 64, "val": 16, "novel": 20,
    }  # fmt: skip
    assert all(len(r) == 600 for classes in ranks.values() for r in classes.values())
    assert not overlapping(ranks.values())
    expected = SETTINGS.datasets["mini-imagenet"].expected
    for split, classes in ranks.items():
        assert getattr(expected.classes, split) == len(classes)
        assert getattr(expected.images, split) == 600 * len(classes)


def test_ranks_run_from_1_to_1300_and_increase_within_a_class(ranks):
    everything = [r for classes in ranks.values() for r in classes.values()]
    assert min(r.min() for r in everything) == 1
    assert max(r.max() for r in everything) == 1300
    for path in lists("mini-imagenet-split").values():
        in_file = {}
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            name, synset = line.split(",")
            in_file.setdefault(synset, []).append(int(name[9:17]))
        for synset, numbers in in_file.items():
            assert (np.diff(numbers) > 0).all(), synset


def test_the_largest_rank_of_five_short_classes_is_their_size_so_ranks_count_from_1(ranks):
    sizes = {"n03062245": 1154, "n03400231": 1220, "n04443257": 1250, "n04612504": 1206,
             "n04418357": 1264}  # fmt: skip
    everything = {name: r for classes in ranks.values() for name, r in classes.items()}
    assert {name: int(everything[name].max()) for name in sizes} == sizes


# -- tiered-ImageNet ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    return {split: read_pairs(path) for split, path in lists("tiered-imagenet-split").items()}


def test_weights_must_not_cross_between_mini_and_tiered_imagenet(ranks, rows):
    tiered = {split: {synset for synset, _ in pairs} for split, pairs in rows.items()}
    assert len(tiered["base"] & set(ranks["novel"])) == 5
    assert len(tiered["novel"] & set(ranks["base"])) == 13


# -- ImageNet-FS -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classes_file():
    return published(SETTINGS.sources["imagenet-fs-split"].files["classes"].path)


def test_both_readings_are_those_that_were_resolved_by_hand(classes_file):
    path = published("imagenet_fs/resolved_synsets_both_readings.json")
    resolved = json.loads(path.read_text(encoding="utf-8"))
    keys = {"by-name": "by_label_names", "by-sorted-index": "by_sorted_index"}
    for reading, key in keys.items():
        subsets = read_subsets(classes_file, reading)
        for subset in SUBSETS:
            assert sorted(subsets[subset]) == sorted(resolved[subset][key])
        base = subsets["base_classes_1"] + subsets["base_classes_2"]
        assert sorted(base) == sorted(resolved["base_classes"][key])


def test_the_two_readings_share_few_classes(classes_file):
    """As docs/data.md states."""
    named, sorted_ = (read_subsets(classes_file, r) for r in ("by-name", "by-sorted-index"))
    shared = {subset: len(set(named[subset]) & set(sorted_[subset])) for subset in SUBSETS}
    assert shared == {
        "base_classes_1": 27,
        "base_classes_2": 37,
        "novel_classes_1": 99,
        "novel_classes_2": 98,
    }
    base = [
        set(subsets["base_classes_1"] + subsets["base_classes_2"]) for subsets in (named, sorted_)
    ]
    assert len(base[0] & base[1]) == 150
    assert len(base[0] & set(sorted_["novel_classes_2"])) == 126
    names = json.loads(classes_file.read_text(encoding="utf-8"))["label_names"]
    assert sum(a == b for a, b in zip(names, sorted(names), strict=True)) == 1
