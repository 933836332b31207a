"""Miniatures of the official archives become stores: every pixel and label, or one clear line.

What is expected is read from the miniatures' tables and pictures here, by Pillow and numpy alone.
"""

import io
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from miniatures import (
    BIRDS,
    CHARACTERS,
    CIFAR_FS,
    CMYK,
    CONFIG,
    DRAWERS,
    FC100,
    FINE,
    GRAY,
    LABEL_NAMES,
    MINI,
    OFFICIAL,
    PNG,
    ROTATIONS,
    SPLITS,
    SUBSETS,
    TIERED,
    TIERED_NAMES,
    TRAINING,
    VALIDATION,
    bird,
    cifar_files,
    cifar_images,
    cub_files,
    encode,
    expected,
    image,
    ink,
    make_all,
    make_cifar,
    make_cifar_splits,
    make_cub,
    make_imagenet_fs_split,
    make_kit,
    make_mini_pickles,
    make_mini_split,
    make_tiered_pickles,
    make_tiered_split,
    make_training,
    make_validation,
    mini_pickle,
    mini_pixels,
    pickled,
    picture,
    tiered_images,
    tiered_pickle,
    training_images,
    validation_name,
    write_settings,
)
from packing import provenance
from PIL import Image

from epcore.commands import fetch
from epcore.data import build
from epcore.data.config import DataConfig
from epcore.data.contents import ImageClass
from epcore.data.datasets import Expected
from epcore.data.store import FILES, ImageStore
from epcore.errors import UserError
from epcore.plan.registry import read_datasets

LAYOUTS = ("folders", "tars", "tar")


@pytest.fixture(autouse=True)
def _only_miniatures(monkeypatch):
    monkeypatch.delenv("EPCORE_MIRROR", raising=False)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """One miniature of everything, not to be changed."""
    return make_all(tmp_path_factory.mktemp("library"))


@pytest.fixture
def ilsvrc(tmp_path):
    """A root with the lists and the development kit; the images are the test's business."""
    root = tmp_path / "ilsvrc"
    make_mini_split(root)
    make_tiered_split(root)
    make_imagenet_fs_split(root)
    make_kit(root)
    return root


def prepared(root, name, work, **changes):
    """A data set with some settings changed, and the receipts of its sources, fetched anew."""
    settings = write_settings(work / "config", root, only=name)
    dataset = read_datasets(settings).datasets[name].model_copy(update=changes)
    receipts = [work / "sources" / f"{source}.json" for source in dataset.sources]
    for source, receipt in zip(dataset.sources, receipts, strict=True):
        fetch.run([source], settings, root, receipt)
    return DataConfig(stage_version=1, dataset=dataset), receipts


def built(root, name, work, **changes):
    out = work / "stores" / name
    build.run(*prepared(root, name, work, **changes), out)
    return ImageStore.open(out)


def refused(root, name, work, message, **changes):
    """The one line that says what is wrong, and no file that could pass for a store."""
    with pytest.raises(UserError, match=message) as caught:
        built(root, name, work, **changes)
    assert "\n" not in str(caught.value)
    assert not [path for path in (work / "stores").rglob("*") if path.is_file()]
    return str(caught.value)


# -- what is expected --------------------------------------------------------------------------


def seen(data, size, square, kind=Image.Resampling.BILINEAR):
    """A picture's content as Pillow reads it: its central square as TADAM takes it, or all."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    if square:
        side = min(picture.size)
        left, top = (length // 2 - side // 2 for length in picture.size)
        picture = Image.fromarray(np.asarray(picture)[top : top + side, left : left + side])
    return np.asarray(picture.resize((size, size), kind))


def training(synset, size, square, kind=Image.Resampling.BILINEAR):
    """All training images of a class by number."""
    return [seen(image(f"{synset}_{n}"), size, square, kind) for n in sorted(TRAINING[synset])]


def mini(square):
    return [
        (
            ImageClass(synset, split),
            [training(synset, 84, square)[rank - 1] for rank in MINI[split][synset]],
        )
        for split in SPLITS
        for synset in sorted(MINI[split])
    ]


def mini_from_pickles():
    return [
        (ImageClass(synset, split), [mini_pixels(synset, place) for place in range(3)])
        for split in SPLITS
        for synset in sorted(MINI[split])
    ]


def tiered():
    return [
        (
            ImageClass(synset, split, group),
            training(synset, 84, square=False, kind=Image.Resampling.BICUBIC),
        )
        for split in SPLITS
        for synset, group in sorted(TIERED[split])
    ]


def tiered_from_pickles():
    names = {("novel", "crane"): "crane (2)"}
    return [
        (
            ImageClass(
                names.get((split, TIERED_NAMES[synset]), TIERED_NAMES[synset]), split, group
            ),
            [pixels for of, pixels in tiered_images(split) if of == label],
        )
        for split in SPLITS
        for label, (synset, group) in enumerate(TIERED[split])
    ]


def cub():
    """Class folders in the order of their names, counted from 0, one by one."""
    groups = {"base": [], "val": [], "novel": []}
    for position, folder in enumerate(sorted(BIRDS)):
        if position in (0, 2, 4, 6):
            split = "base"
        else:
            split = {1: "val", 3: "novel", 5: "val", 7: "novel"}[position]
        pictures = [seen(bird(f"{folder}/{n}"), 84, square=False) for n in sorted(BIRDS[folder])]
        groups[split].append((ImageClass(folder, split), pictures))
    return [pair for pairs in groups.values() for pair in pairs]


def cifar(chosen):
    """Classes by name; the training file's images, then the test file's."""
    images = [*cifar_images("train"), *cifar_images("test")]
    return [
        (ImageClass(name, split, FINE[name]), [pixels for of, pixels in images if of == name])
        for split, names in chosen.items()
        for name in sorted(names)
    ]


def fc100():
    return {s: [name for name in FINE if FINE[name] in groups] for s, groups in FC100.items()}


def turned(pixels, rotation):
    """Anticlockwise by quarters: what was at the right is at the top."""
    for _ in range(ROTATIONS.index(rotation)):
        size = len(pixels)
        pixels = np.array([[pixels[j, size - 1 - i] for j in range(size)] for i in range(size)])
    return pixels


def drawing(character, drawer):
    gray = np.where(ink(character, drawer), 0, 255).astype(np.uint8)
    picture = Image.fromarray(np.stack([gray] * 3, axis=2))
    return np.asarray(picture.resize((28, 28), Image.Resampling.BILINEAR))


def omniglot():
    return [
        (
            ImageClass(f"{character}/{rotation}", split, character.split("/")[0]),
            [turned(drawing(character, drawer), rotation) for drawer in DRAWERS],
        )
        for split in SPLITS
        for character in sorted(CHARACTERS[split])
        for rotation in ROTATIONS
    ]


def imagenet_fs(reading, part):
    """Classes by synset; an index is a place in the published list, or in the sorted one."""
    names = LABEL_NAMES if reading == "by-name" else sorted(LABEL_NAMES)
    groups = {names[index]: subset for subset, indices in SUBSETS.items() for index in indices}
    splits = {"novel_classes_1": "val", "novel_classes_2": "novel"}
    queries = {
        synset: [
            seen(image(validation_name(number)), 256, square=True)
            for number, of in enumerate(VALIDATION, start=1)
            if of == synset
        ]
        for synset in groups
    }
    return [
        (
            ImageClass(synset, splits.get(groups[synset], "base"), groups[synset]),
            training(synset, 256, square=True) if part == "train" else queries[synset],
        )
        for synset in sorted(groups)
    ]


EXPECTED = {
    "mini-imagenet": lambda: mini(square=True),
    "mini-imagenet-resize": lambda: mini(square=False),
    "mini-imagenet-pickles": mini_from_pickles,
    "tiered-imagenet": tiered,
    "tiered-imagenet-pickles": tiered_from_pickles,
    "cub": cub,
    "imagenet-fs-by-name": lambda: imagenet_fs("by-name", "train"),
    "imagenet-fs-by-name-queries": lambda: imagenet_fs("by-name", "val"),
    "imagenet-fs-by-sorted-index": lambda: imagenet_fs("by-sorted-index", "train"),
    "imagenet-fs-by-sorted-index-queries": lambda: imagenet_fs("by-sorted-index", "val"),
    "cifar-fs": lambda: cifar(CIFAR_FS),
    "fc100": lambda: cifar(fc100()),
    "omniglot": omniglot,
}


def assert_holds(store, classes_and_images):
    """The store has these classes in this order, and all of these images in this order."""
    classes, images = zip(*classes_and_images, strict=True)
    assert store.classes == classes
    assert store.labels.tolist() == [n for n, some in enumerate(images) for _ in some]
    assert np.array_equal(store.images, [pixels for some in images for pixels in some])


def images_of(store, name):
    label = [c.name for c in store.classes].index(name)
    return store.images[store.labels == label]


# -- all of them -------------------------------------------------------------------------------


def test_every_published_data_set_of_the_project_is_tested_here():
    settings = read_datasets(CONFIG)
    assert {n for n, d in settings.datasets.items() if hasattr(d, "expected")} == set(EXPECTED)
    assert set(OFFICIAL) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_classes_splits_groups_labels_and_pixels_are_those_of_the_archives(name, library, tmp_path):
    assert_holds(built(library, name, tmp_path), EXPECTED[name]())


def test_another_number_than_the_published_one_is_refused_with_both(library, tmp_path):
    numbers = expected()["cub"]
    more = Expected(classes=numbers["classes"] | {"val": numbers["classes"]["val"] + 1})
    found, wanted = numbers["classes"]["val"], more.classes.val
    message = rf"cub: split val has {found} classes, {wanted} are published; .*incomplete"
    refused(library, "cub", tmp_path, message, expected=more)


def test_numbers_of_images_are_compared_as_well(library, tmp_path):
    numbers = expected()["cub"]
    wrong = Expected(**numbers | {"images": numbers["images"] | {"novel": 4321}})
    found = numbers["images"]["novel"]
    refused(
        library, "cub", tmp_path, f"novel has {found} images, 4,321 are published", expected=wrong
    )


def test_the_store_says_what_it_was_built_from(library, tmp_path):
    store = built(library, "cifar-fs", tmp_path)
    sources = read_datasets(tmp_path / "config").sources
    told = provenance(store)["sources"]
    assert told["cifar-100"] == {
        "cifar-100-python.tar.gz": {"md5": sources["cifar-100"].files["archive"].md5}
    }
    assert set(told["cifar-fs-split"]) == {f"cifar-fs-{n}.json" for n in SPLITS.values()}
    assert provenance(store)["dataset"]["lists"] == "cifar-fs-split"


def test_a_file_that_changed_since_it_was_verified_is_not_read(library, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(library / "cub", root / "cub")
    stage, receipts = prepared(root, "cub", tmp_path)
    with (root / "cub" / "CUB_200_2011.tgz").open("ab") as file:
        file.write(b"more")
    with pytest.raises(UserError, match=r"CUB_200_2011\.tgz .*changed since"):
        build.run(stage, receipts, tmp_path / "stores" / "cub")


# -- ILSVRC2012 --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_training_images_may_be_folders_tars_or_one_tar(layout, ilsvrc, tmp_path):
    make_training(ilsvrc, layout)
    name = "mini-imagenet"  # which takes some images of each class, in the order of their ranks
    assert_holds(built(ilsvrc, name, tmp_path), EXPECTED[name]())


def test_gray_inked_and_misnamed_pictures_come_out_in_their_colors(library, tmp_path):
    store = built(library, "tiered-imagenet", tmp_path)
    for name in (CMYK, PNG, GRAY):
        synset, number = name.split("_")
        place = sorted(TRAINING[synset]).index(int(number))
        colors = images_of(store, synset)[place].reshape(-1, 3)
        original = picture(name) // (3 if name == CMYK else 1)
        assert np.abs(colors.mean(axis=0) - original.reshape(-1, 3).mean(axis=0)).max() < 8
        assert (name == GRAY) == bool((colors == colors[:, :1]).all())


def test_a_missing_image_is_refused_because_it_would_shift_the_ranks(ilsvrc, tmp_path):
    images = training_images()
    del images["n02950826"]["n02950826_41.JPEG"]
    make_training(ilsvrc, "folders", images)
    for name in ("mini-imagenet", "tiered-imagenet", "imagenet-fs-by-name"):
        message = r"class n02950826 has 3 images, ILSVRC2012 has 4; unpack it again"
        refused(ilsvrc, name, tmp_path, message)


def test_an_image_too_many_is_refused_as_well(ilsvrc, tmp_path):
    images = training_images()
    images["n02950826"]["n02950826_7.JPEG"] = image("n02950826_5")
    make_training(ilsvrc, "tars", images)
    refused(ilsvrc, "mini-imagenet", tmp_path, "n02950826 has 5 images, ILSVRC2012 has 4")


def test_a_missing_class_is_named(ilsvrc, tmp_path):
    images = training_images()
    del images["n02950826"]
    make_training(ilsvrc, "tar", images)
    message = r"ilsvrc2012/.*train.* has no class n02950826, neither a folder nor a tar"
    refused(ilsvrc, "mini-imagenet", tmp_path, message)


def test_only_classes_of_the_data_set_must_be_there(ilsvrc, tmp_path):
    images = training_images()
    for synset in set(TRAINING) - {synset for classes in MINI.values() for synset in classes}:
        del images[synset]
    make_training(ilsvrc, "folders", images)
    assert_holds(built(ilsvrc, "mini-imagenet", tmp_path), mini(square=True))


def test_other_files_among_the_images_are_no_images(ilsvrc, tmp_path):
    folder = make_training(ilsvrc)
    for name in (".DS_Store", "Thumbs.db", "n01739381_5.JPEG", "n01532829_5.JPEG.part"):
        (folder / "n01532829" / name).write_bytes(b"")
    assert_holds(built(ilsvrc, "mini-imagenet", tmp_path), mini(square=True))


def test_a_corrupt_image_is_named_and_nothing_is_left(ilsvrc, tmp_path):
    images = training_images()
    whole = images["n03400231"]["n03400231_90.JPEG"]
    images["n03400231"]["n03400231_90.JPEG"] = whole[: len(whole) // 2]
    make_training(ilsvrc, "folders", images)
    message = r"n03400231_90\.JPEG cannot be read as an image .*; replace or remove it"
    refused(ilsvrc, "tiered-imagenet", tmp_path, message)


def test_a_truncated_tar_of_a_class_is_named(ilsvrc, tmp_path):
    path = make_training(ilsvrc, "tars") / "n03400231.tar"
    content = path.read_bytes().rstrip(b"\0")
    path.write_bytes(content[: len(content) // 2])
    refused(ilsvrc, "mini-imagenet", tmp_path, r"n03400231(\.tar.* damaged| has \d images)")


# -- tiered-ImageNet ---------------------------------------------------------------------------


def test_a_super_class_in_two_splits_is_refused(tmp_path):
    _, labels = tiered_pickle("val")
    groups = [*labels["label_general_str"][:-1], "n01524359"]
    make_tiered_pickles(tmp_path, val_labels=labels | {"label_general_str": groups})
    message = "super-class 'n01524359' is in base and in val"
    refused(tmp_path, "tiered-imagenet-pickles", tmp_path / "a", message)


@pytest.mark.parametrize("python", [2, 3])
def test_pickles_of_either_python_give_the_same_store(python, tmp_path):
    make_mini_split(tmp_path)
    make_mini_pickles(tmp_path, python)
    assert_holds(built(tmp_path, "mini-imagenet-pickles", tmp_path / "a"), mini_from_pickles())
    make_tiered_pickles(tmp_path, python)
    assert_holds(built(tmp_path, "tiered-imagenet-pickles", tmp_path / "b"), tiered_from_pickles())
    make_cifar(tmp_path, cifar_files(python))
    make_cifar_splits(tmp_path)
    assert_holds(built(tmp_path, "cifar-fs", tmp_path / "c"), cifar(CIFAR_FS))


def test_arrays_of_one_column_are_pngs_as_well(tmp_path):
    """As `cv2.imencode` gave them for years."""
    columns = {f"{split}_images_png": [png[:, None] for png in tiered_pickle(split)[0]]
               for split in SPLITS}  # fmt: skip
    make_tiered_pickles(tmp_path, python=2, **columns)
    assert_holds(built(tmp_path, "tiered-imagenet-pickles", tmp_path), tiered_from_pickles())


@pytest.mark.parametrize("change", [-1, 1])
def test_images_and_labels_of_different_numbers_are_refused(change, tmp_path):
    images, _ = tiered_pickle("val")
    images = images[:-1] if change < 0 else [*images, images[0].copy()]
    make_tiered_pickles(tmp_path, val_images_png=images)
    refused(
        tmp_path, "tiered-imagenet-pickles", tmp_path / "a",
        r"val_images_png\.pkl has \d images.*its labels are 5; get both again",
    )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"label_specific": np.array([0, 0, 0, 0, 0])},
        {"label_specific": np.array([0, 1, 0, 1, -1])},
        {"label_specific": None},
        {"label_general": np.array([0, 0, 0, 0, 7])},
        {"label_specific_str": ["one"]},
    ],
)
def test_labels_that_do_not_fit_together_are_refused(change, tmp_path):
    make_tiered_pickles(tmp_path, val_labels=tiered_pickle("val")[1] | change)
    message = r"val_labels\.pkl(: labels and names of classes do not fit together| is refused)"
    refused(tmp_path, "tiered-imagenet-pickles", tmp_path / "a", message)


# -- pickles that are not what they should be --------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"image_data": np.zeros((3, 84, 84, 3))},
        {"image_data": [1, 2, 3]},
        {"class_dict": {"n02950826": 5}},
        {"class_dict": {"n02950826": [0, 1, 1]}},
        {"class_dict": {"n02950827": [0, 1, 2]}},
        {"class_dict": [0, 1, 2]},
    ],
)
def test_a_pickle_of_mini_imagenet_that_is_not_its_splits_is_refused(change, tmp_path):
    make_mini_split(tmp_path)
    make_mini_pickles(tmp_path, val=pickled(mini_pickle("val") | change))
    message = r"mini-imagenet-cache-validation\.pkl"
    refused(tmp_path, "mini-imagenet-pickles", tmp_path / "a", message)


def test_a_pickle_under_another_splits_name_is_refused(tmp_path):
    make_mini_split(tmp_path)
    make_mini_pickles(tmp_path, novel=pickled(mini_pickle("base")))
    message = r"cache-test\.pkl: .*not those of the split novel; was it renamed\?"
    refused(tmp_path, "mini-imagenet-pickles", tmp_path / "a", message)


class Attack:
    """What a pickle may order: here, to make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch '{self.path}'",)


def test_what_a_pickle_orders_is_never_done(tmp_path):
    trace = tmp_path / "trace"
    attack = Attack(trace)
    make_mini_split(tmp_path)
    make_cifar_splits(tmp_path)
    message = r"is refused: .*holds more than arrays, texts and numbers .*posix\.system"

    make_mini_pickles(tmp_path, val=pickled(mini_pickle("val") | {"more": attack}))
    refused(tmp_path, "mini-imagenet-pickles", tmp_path / "a", message)
    images, labels = tiered_pickle("val")
    make_tiered_pickles(tmp_path, val_labels=labels | {"more": attack})
    refused(tmp_path, "tiered-imagenet-pickles", tmp_path / "b", message)
    files = cifar_files()
    for name in ("train", "meta"):
        make_cifar(tmp_path, files | {f"cifar-100-python/{name}": pickled(attack)})
        refused(tmp_path, "cifar-fs", tmp_path / "c", message)
    # Of the list of PNGs nothing is ever run, so it need not be refused.
    make_tiered_pickles(tmp_path, val_images_png=[attack, *images])
    built(tmp_path, "tiered-imagenet-pickles", tmp_path / "b")
    assert not trace.exists()


# -- CUB ---------------------------------------------------------------------------------------


def test_the_split_of_all_200_birds_is_the_rule_counted_by_hand():
    from epcore.data.builders.cub import split_of

    counted = {"base": 0, "val": 0, "novel": 0}
    turn = iter(["base", "val", "base", "novel"] * 50)
    for position, split in enumerate(turn):
        assert split_of(position) == split
        counted[split] += 1
    assert counted == {"base": 100, "val": 50, "novel": 50}


def test_hidden_files_among_the_birds_are_no_pictures(tmp_path):
    names = (".DS_Store", "002.Laysan_Albatross/._Laysan_Albatross_0002_1027.jpg")
    hidden = {f"CUB_200_2011/images/{name}": b"" for name in names}
    make_cub(tmp_path, cub_files() | hidden)
    assert_holds(built(tmp_path, "cub", tmp_path), cub())


# -- CIFAR-100 ---------------------------------------------------------------------------------


def test_shared_images_of_cifar_100_are_kept_as_published_or_left_out_of_base(tmp_path):
    """The published numbers are compared with what the archive holds, before any is left out."""
    files, part = cifar_files(), "cifar-100-python/train"
    content = pickle.loads(files[part], encoding="latin1")
    names = list(FINE)
    of = {name: content["fine_labels"].index(names.index(name)) for name in ("whale", "orange")}
    content["data"][of["whale"]] = content["data"][of["orange"]]
    make_cifar(tmp_path, files | {part: pickled(content)})
    make_cifar_splits(tmp_path)
    kept = built(tmp_path, "cifar-fs", tmp_path / "kept")
    left = built(tmp_path, "cifar-fs", tmp_path / "left", shared_images="leave-out")
    whale = [c.name for c in kept.classes].index("whale")
    row = np.flatnonzero(kept.labels == whale)[0]
    assert np.array_equal(left.images, np.delete(kept.images, row, axis=0))
    assert np.array_equal(left.labels, np.delete(kept.labels, row))
    assert len(kept.image_indices("base")) == expected()["cifar-fs"]["images"]["base"]
    for store in (kept, left):
        lines = (store.directory / "shared-images.csv").read_text().splitlines()
        assert lines[1:] == ["image 1 of class 'whale',whale,base,image 1 of class 'orange',"
                             "orange,novel"]  # fmt: skip


# -- Omniglot ----------------------------------------------------------------------------------


# -- ImageNet-FS -------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["flat", "classes", "tar"])
def test_validation_images_may_be_flat_in_class_folders_or_a_tar(layout, ilsvrc, tmp_path):
    make_validation(ilsvrc, layout)
    store = built(ilsvrc, "imagenet-fs-by-name-queries", tmp_path)
    assert_holds(store, imagenet_fs("by-name", "val"))


def test_the_development_kit_says_what_a_validation_image_shows_and_not_its_folder(
    ilsvrc, tmp_path
):
    make_validation(ilsvrc, "classes", folders=["n01532829"] * len(VALIDATION))
    store = built(ilsvrc, "imagenet-fs-by-name-queries", tmp_path)
    assert_holds(store, imagenet_fs("by-name", "val"))


def test_a_missing_validation_image_is_named(ilsvrc, tmp_path):
    folder = make_validation(ilsvrc)
    (folder / f"{validation_name(7)}.JPEG").unlink()
    (folder / f"{validation_name(11)}.JPEG").unlink()
    message = rf"lacks 2 of 18 validation images, for example {validation_name(7)}\.JPEG"
    refused(ilsvrc, "imagenet-fs-by-name-queries", tmp_path, message)


def test_a_validation_image_too_many_is_named(ilsvrc, tmp_path):
    folder = make_validation(ilsvrc)
    shutil.copy(folder / f"{validation_name(1)}.JPEG", folder / f"{validation_name(19)}.JPEG")
    message = rf"{validation_name(19)}\.JPEG: ILSVRC2012 has no such image"
    refused(ilsvrc, "imagenet-fs-by-name-queries", tmp_path, message)


def test_a_validation_image_in_two_folders_is_named(ilsvrc, tmp_path):
    folder = make_validation(ilsvrc)
    (folder / "more").mkdir()
    shutil.copy(folder / f"{validation_name(1)}.JPEG", folder / "more")
    message = rf"{validation_name(1)}\.JPEG: .*it is there twice"
    refused(ilsvrc, "imagenet-fs-by-name-queries", tmp_path, message)


@pytest.mark.parametrize("layout", ["flat", "tar"])
def test_a_corrupt_validation_image_is_named(layout, ilsvrc, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "miniatures.image", lambda name: image(name)[: 400 if "05" in name else None]
    )
    make_validation(ilsvrc, layout)
    message = rf"{validation_name(5)}\.JPEG cannot be read as an image"
    refused(ilsvrc, "imagenet-fs-by-name-queries", tmp_path, message)


# -- a build that is killed --------------------------------------------------------------------


def test_a_killed_build_leaves_nothing_that_looks_finished_and_the_next_one_is_right(tmp_path):
    large = {folder: picture(folder, (9, 9)).repeat(150, 0).repeat(150, 1) for folder in BIRDS}
    birds = {folder: encode(pixels) for folder, pixels in large.items()}
    names = [f"{folder}/{n:03d}.jpg" for folder in BIRDS for n in range(6)]
    lines = "".join(f"{number} {name}\n" for number, name in enumerate(names, start=1))
    files = {"CUB_200_2011/images.txt": lines.encode()}
    files |= {f"CUB_200_2011/images/{name}": birds[name.split("/")[0]] for name in names}
    make_cub(tmp_path, files)
    numbers = Expected(classes={"base": 4, "val": 2, "novel": 2})
    stage, receipts = prepared(tmp_path, "cub", tmp_path, expected=numbers)
    out = tmp_path / "cub-built"
    command = [sys.executable, "-m", "epcore", "data", "--config", stage.model_dump_json(),
               "--sources", *map(str, receipts), "--out", str(out)]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    process = subprocess.Popen(command, **quiet)
    while not list(out.glob(".*.tmp.npy")):
        assert process.poll() is None, "it ended before it wrote anything"
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    left = [path.name for path in out.iterdir()]
    assert len(left) == 1
    assert left[0].endswith(".tmp.npy")
    with pytest.raises(UserError, match=r"has no images\.npy"):
        ImageStore.open(out)

    assert subprocess.run(command, check=False, **quiet).returncode == 0
    assert sorted(p.name for p in out.iterdir()) == sorted(FILES)
    store = ImageStore.open(out)
    assert len(store.labels) == len(names)
    for label, image_class in enumerate(store.classes):
        pixels = seen(birds[image_class.name], 84, square=False)
        assert (store.images[store.labels == label] == pixels).all()
