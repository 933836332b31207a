"""Real Snakemake runs that build every kind of data set from miniatures of its official files."""

import hashlib
import shutil

import numpy as np
import pytest
import yaml
from miniatures import (
    OFFICIAL,
    expected,
    make_ilsvrc,
    make_lists,
    make_pixels,
    picture,
    settings_of,
)
from packing import provenance
from PIL import Image

from epcore.data.store import ImageStore

pytestmark = pytest.mark.workflow

OWN = {
    "own-folder": {
        "kind": "folder",
        "title": "a folder of mine",
        "path": "data/own folder",
        "image_size": 12,
    },
    "own-drawn-folder": {
        "kind": "folder",
        "title": "a folder of mine without split.csv",
        "path": "data/own drawn folder",
        "image_size": 12,
        "split": {"base": 2, "val": 1, "novel": 1, "seed": 0},
    },
    "own-arrays": {
        "kind": "npz",
        "title": "arrays of mine",
        "path": "data/own.npz",
        "image_size": 12,
    },
}
NAMES = (*OFFICIAL, *OWN, "tiny-glyphs")
STORES = tuple(f"results/tiny/data/{name}/store.json" for name in NAMES)
ONCE = ("--cores", "1")


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory):
    """A folder with ILSVRC2012, which is got by hand; all else lies in the project."""
    folder = tmp_path_factory.mktemp("somewhere else")
    make_ilsvrc(folder)
    return folder


@pytest.fixture
def mirror(mirrored, monkeypatch):
    monkeypatch.setenv("EPCORE_MIRROR", str(mirrored))
    return mirrored


@pytest.fixture
def furnished(project, mirror):
    """The project with all miniatures, and nothing run yet."""
    data = project.folder / "data"
    make_lists(data)
    make_pixels(data)
    make_own(data)
    settings = settings_of(data, mirror)
    settings["datasets"] |= OWN
    text = yaml.safe_dump(settings, sort_keys=False, width=1000)
    (project.folder / "config/datasets.yaml").write_text(text, encoding="utf-8")
    return project


def make_own(data):
    classes = {"ant": "val", "bee": "base", "cat": "novel", "dog": "base"}
    lines = ["filename,label,split"]
    for folder in ("own folder", "own drawn folder"):
        for name in classes:
            place = data / folder / "images" / name
            place.mkdir(parents=True)
            for number in range(2):
                Image.fromarray(picture(f"{name} {number}")).save(place / f"{number}.png")
    lines += [f"{n}.png,{name},{split}" for name, split in classes.items() for n in range(2)]
    (data / "own folder" / "split.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    np.savez(
        data / "own.npz",
        images=np.stack([picture(f"{name} array", (12, 12)) for name in classes]),
        labels=np.array(list(classes)),
        split=np.array(list(classes.values())),
    )


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The `run` that built everything, once for all tests, and the `folder` with what came out."""
    return {"folder": tmp_path_factory.mktemp("first") / "built", "run": None}


@pytest.fixture
def built(furnished, first):
    """A copy of the project with all data sets built, that a test may change."""
    if first["run"] is None:
        first["run"] = furnished.snakemake(*ONCE, *STORES)
        assert first["run"].code == 0, first["run"].text
        shutil.copytree(furnished.folder, first["folder"])
    else:
        shutil.rmtree(furnished.folder)
        shutil.copytree(first["folder"], furnished.folder)
    return furnished


def plan(project):
    return project.snakemake("-n", *STORES)


def complaint(run):
    """What Snakemake prints of a failed job, checked to be no traceback."""
    assert run.code != 0, run.text
    assert "Traceback" not in run.text, run.text
    return run.text


def test_one_call_builds_every_kind_of_data_set_from_its_files(built, first):
    assert first["run"].jobs == {"fetch": len(settings_of()["sources"]), "data": len(NAMES)}
    kinds = set()
    for name in NAMES:
        store = ImageStore.open(built.folder / "results/tiny/data" / name)
        kinds.add(provenance(store)["dataset"]["kind"])
        numbers = expected().get(name, {"classes": {}})
        for split, count in numbers["classes"].items():
            assert len(store.class_indices(split)) == count
        for split, count in numbers.get("images", {}).items():
            assert len(store.image_indices(split)) == count
    assert len(kinds) == 11
    assert not [path for path in built.folder.rglob("*") if ".tmp" in path.name]


def test_a_second_call_has_nothing_to_do(built):
    assert built.snakemake(*ONCE, *STORES).nothing_to_do


def test_files_on_another_disk_redo_nothing_and_are_found_there(built):
    """Its path has braces, which Snakemake fills in elsewhere."""
    built.replace("config/config.yaml", "data_root: data", 'data_root: "the {big} disk"')
    assert plan(built).nothing_to_do
    disk = built.folder / "the {big} disk"
    disk.mkdir()
    shutil.move(built.folder / "data/cub", disk)
    receipt = "results/tiny/sources/cub-200-2011.json"
    (built.folder / receipt).unlink()
    run = built.snakemake(*ONCE, receipt)
    assert run.code == 0, run.text
    assert "the {big} disk/cub/CUB_200_2011.tgz" in (built.folder / receipt).read_text()


def test_another_split_file_of_ones_own_rebuilds_that_data_set(built):
    built.replace("data/own folder/split.csv", "0.png,cat,novel\n", "")
    run = built.snakemake(*ONCE, *STORES)
    assert run.jobs == {"data": 1}
    store = ImageStore.open(built.folder / "results/tiny/data/own-folder")
    assert len(store.image_indices("novel")) == 1


def test_another_checksum_fetches_anew_and_fails_with_both_checksums(built):
    content = (built.folder / "data/cub/CUB_200_2011.tgz").read_bytes()
    old, new = hashlib.md5(content).hexdigest(), "ab" * 16
    built.replace("config/datasets.yaml", old, new)
    assert plan(built).jobs == {"fetch": 1, "data": 1}
    message = complaint(built.snakemake(*ONCE, *STORES))
    assert (
        f"data/cub/CUB_200_2011.tgz is not the published file: its md5 is {old}, {new} is expected"
    ) in message
    assert (built.folder / "data/cub/CUB_200_2011.tgz").is_file()


def test_what_is_got_by_hand_is_asked_for_with_the_steps_and_the_place(furnished, monkeypatch):
    monkeypatch.delenv("EPCORE_MIRROR")
    target = "results/tiny/data/mini-imagenet/store.json"
    message = complaint(furnished.snakemake(*ONCE, "--keep-going", target))
    for said in (
        "to be got by hand (ILSVRC2012 training images). (1) Register at https://image-net.org",
        "(2) On the page of ILSVRC2012 download the development kit",
        "the folder of EPCORE_MIRROR",
    ):
        assert said in message
    assert "data/ilsvrc2012/" in message
    assert not (furnished.folder / target).exists()
