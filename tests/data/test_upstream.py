"""The split files that others published are those that the project and its tests take them for.

Needs these files in the folder that EPCORE_MIRROR names; nothing is downloaded.
"""

import hashlib
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from epcore.commands.cli import main
from epcore.data.builders.cub import split_of
from epcore.data.builders.imagenet_fs import READINGS, SUBSETS, overlap, read_subsets
from epcore.data.builders.mini_imagenet import read_ranks
from epcore.data.lists import read_json, read_pairs
from epcore.plan.registry import read_datasets

CONFIG = Path(__file__).parents[2] / "config"
SETTINGS = read_datasets(CONFIG)
LISTS = [name for name in SETTINGS.sources if name.endswith("-split")]
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


# -- the files ---------------------------------------------------------------------------------


def test_there_are_six_sources_of_lists():
    assert len(LISTS) == 6
    used = {getattr(dataset, "lists", None) for dataset in SETTINGS.datasets.values()} - {None}
    assert set(LISTS) == used


@pytest.mark.parametrize("source", LISTS)
def test_fetch_finds_the_published_files_and_vouches_for_their_checksums(source, tmp_path, capsys):
    files = SETTINGS.sources[source].files
    mirrored = {key: published(file.path) for key, file in files.items()}
    receipt = tmp_path / "receipt.json"
    where = ["--settings", str(CONFIG), "--root", str(tmp_path / "none")]
    assert main(["fetch", source, *where, "--receipt", str(receipt)]) == 0
    assert capsys.readouterr().out.count(": verified") == len(files)
    entries = json.loads(receipt.read_text(encoding="utf-8"))["files"]
    assert entries.keys() == files.keys()
    for key, entry in entries.items():
        content = mirrored[key].read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        assert Path(entry["path"]) == mirrored[key]
        assert (entry["sha256"], entry["size"]) == (digest, len(content))
        assert (files[key].sha256, files[key].size) == (digest, len(content))
    assert not (tmp_path / "none").exists()


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


def test_tiered_imagenet_has_351_97_and_160_classes_in_20_6_and_8_super_classes(rows):
    classes = {split: [synset for synset, _ in pairs] for split, pairs in rows.items()}
    groups = {split: {group for _, group in pairs} for split, pairs in rows.items()}
    assert [len(set(classes[s])) for s in SPLITS] == [len(classes[s]) for s in SPLITS]
    assert [len(classes[s]) for s in SPLITS] == [351, 97, 160]
    assert [len(groups[s]) for s in SPLITS] == [20, 6, 8]
    assert not overlapping(classes.values())
    assert not overlapping(groups.values())
    expected = SETTINGS.datasets["tiered-imagenet"].expected
    assert [getattr(expected.classes, s) for s in SPLITS] == [351, 97, 160]
    total = sum(getattr(expected.images, split) for split in SPLITS)
    assert total == 779_165


def test_weights_must_not_cross_between_mini_and_tiered_imagenet(ranks, rows):
    tiered = {split: {synset for synset, _ in pairs} for split, pairs in rows.items()}
    assert len(tiered["base"] & set(ranks["novel"])) == 5
    assert len(tiered["novel"] & set(ranks["base"])) == 13


# -- CIFAR-FS and FC100 ------------------------------------------------------------------------


def test_cifar_fs_has_64_16_and_20_classes():
    pairs = {split: read_json(path) for split, path in lists("cifar-fs-split").items()}
    classes = {split: [name for _, name in content] for split, content in pairs.items()}
    assert [len(set(classes[s])) for s in SPLITS] == [64, 16, 20]
    assert not overlapping(classes.values())
    group_of = {}
    for content in pairs.values():
        for group, name in content:
            assert group_of.setdefault(name, group) == group
    assert set(Counter(group_of.values()).values()) == {5}  # CIFAR-100 whole, 20 times 5


def test_fc100_has_12_4_and_4_super_classes_which_are_those_of_cifar_fs():
    groups = {split: read_json(path) for split, path in lists("fc100-split").items()}
    assert [len(set(groups[s])) for s in SPLITS] == [12, 4, 4]
    assert not overlapping(groups.values())
    of_cifar_fs = {g for path in lists("cifar-fs-split").values() for g, _ in read_json(path)}
    assert set().union(*groups.values()) == of_cifar_fs
    expected = SETTINGS.datasets["fc100"].expected
    assert [getattr(expected.classes, s) for s in SPLITS] == [5 * len(groups[s]) for s in SPLITS]


# -- Omniglot ----------------------------------------------------------------------------------


def test_omniglot_keeps_the_four_rotations_of_a_character_in_one_split():
    lines = {
        split: path.read_text(encoding="utf-8").split()
        for split, path in lists("omniglot-split").items()
    }
    assert [len(set(lines[s])) for s in SPLITS] == [4112, 688, 1692]
    characters = {}
    for split, names in lines.items():
        rotations = {}
        for name in names:
            character, rotation = name.rsplit("/", 1)
            rotations.setdefault(character, []).append(rotation)
        assert {tuple(sorted(r)) for r in rotations.values()} == {
            ("rot000", "rot090", "rot180", "rot270")
        }
        characters[split] = rotations.keys()
    assert not overlapping(characters.values())
    assert sum(map(len, characters.values())) == 1623
    expected = SETTINGS.datasets["omniglot"].expected
    assert [getattr(expected.images, s) for s in SPLITS] == [20 * len(lines[s]) for s in SPLITS]


# -- CUB ---------------------------------------------------------------------------------------


def test_the_rule_of_cub_gives_the_published_numbers_of_images():
    lines = published("cub_meta/images.txt").read_text(encoding="utf-8").splitlines()
    images = Counter(line.split()[1].split("/")[0] for line in lines)
    counts = Counter()
    classes = Counter()
    for position, folder in enumerate(sorted(images)):
        counts[split_of(position)] += images[folder]
        classes[split_of(position)] += 1
    assert counts == {"base": 5885, "val": 2950, "novel": 2953}
    assert classes == {"base": 100, "val": 50, "novel": 50}
    expected = SETTINGS.datasets["cub"].expected
    assert expected.images.model_dump() == counts
    assert expected.classes.model_dump() == classes


# -- ImageNet-FS -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classes_file():
    return published(SETTINGS.sources["imagenet-fs-split"].files["classes"].path)


def test_imagenet_fs_has_193_and_196_base_and_300_and_311_novel_classes(classes_file):
    for reading in READINGS:
        subsets = read_subsets(classes_file, reading)
        assert {name: len(synsets) for name, synsets in subsets.items()} == {
            "base_classes_1": 193, "base_classes_2": 196,
            "novel_classes_1": 300, "novel_classes_2": 311,
        }  # fmt: skip
        assert not overlapping(subsets.values())
        assert len(set().union(*subsets.values())) == 1000


def test_both_readings_are_those_that_were_resolved_by_hand(classes_file):
    path = published("imagenet_fs/resolved_synsets_both_readings.json")
    resolved = json.loads(path.read_text(encoding="utf-8"))
    keys = dict(zip(READINGS, ("by_label_names", "by_sorted_index"), strict=True))
    for reading, key in keys.items():
        subsets = read_subsets(classes_file, reading)
        for subset in SUBSETS:
            assert sorted(subsets[subset]) == sorted(resolved[subset][key])
        base = subsets["base_classes_1"] + subsets["base_classes_2"]
        assert sorted(base) == sorted(resolved["base_classes"][key])


def test_the_two_readings_share_few_classes(classes_file):
    assert overlap(classes_file) == {
        "base_classes_1": "27 of 193",
        "base_classes_2": "37 of 196",
        "novel_classes_1": "99 of 300",
        "novel_classes_2": "98 of 311",
        "novel_classes_2 by sorted index that are base by name": "126 of 311",
    }
    base = [
        set(subsets["base_classes_1"] + subsets["base_classes_2"])
        for subsets in (read_subsets(classes_file, reading) for reading in READINGS)
    ]
    assert len(base[0] & base[1]) == 150
    names = json.loads(classes_file.read_text(encoding="utf-8"))["label_names"]
    assert sum(a == b for a, b in zip(names, sorted(names), strict=True)) == 1
