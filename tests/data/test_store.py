"""The packed store: what goes in comes out, and nothing damaged is opened in silence."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from packing import pack, provenance

from epcore.data.contents import ImageClass
from epcore.data.store import FILES, ImageStore
from epcore.errors import UserError

CLASSES = (
    ImageClass("ant", "base", "insect"),
    ImageClass("bee", "base", "insect"),
    ImageClass("cat", "val"),
    ImageClass("dog", "novel"),
)
LABELS = np.array([0, 0, 1, 1, 2, 2, 3, 3])
SIZE = 4


def pictures(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (len(LABELS), SIZE, SIZE, 3), np.uint8)


def write(
    directory: Path,
    images: np.ndarray | Iterator[np.ndarray] | None = None,
    classes: tuple[ImageClass, ...] = CLASSES,
    labels: np.ndarray = LABELS,
) -> Path:
    images = pictures() if images is None else images
    pack(directory, classes, labels, images, SIZE, {"kind": "test"}, shared_images="refuse")
    return directory


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    return write(tmp_path / "animals")


def test_what_is_written_is_what_is_read(animals: Path) -> None:
    store = ImageStore.open(animals)
    assert np.array_equal(store.images, pictures())
    assert np.array_equal(store.labels, LABELS)
    assert (store.classes, store.name) == (CLASSES, "animals")
    assert provenance(store) == {"kind": "test"}


def test_splits_list_their_own_classes_and_images(animals: Path) -> None:
    store = ImageStore.open(animals)
    assert [store.class_indices(split) for split in ("base", "val", "novel")] == [[0, 1], [2], [3]]
    assert store.image_indices("base").tolist() == [0, 1, 2, 3]
    assert store.image_indices("novel").tolist() == [6, 7]


def test_images_are_mapped_and_not_loaded(animals: Path) -> None:
    assert isinstance(ImageStore.open(animals).images, np.memmap)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_with_the_remedy(animals: Path, name: str) -> None:
    (animals / name).unlink()
    with pytest.raises(UserError, match=rf"animals has no {name}; delete the folder"):
        ImageStore.open(animals)


def test_tampered_labels_are_damage_and_name_the_file(animals: Path) -> None:
    np.save(animals / "labels.npy", LABELS[::-1])
    with pytest.raises(UserError, match=r"damaged .*labels\.npy.*delete the folder"):
        ImageStore.open(animals)


def test_images_of_another_shape_are_damage_and_name_the_file(animals: Path) -> None:
    np.save(animals / "images.npy", pictures()[:, :2])
    with pytest.raises(UserError, match=r"damaged .*images\.npy.*delete the folder"):
        ImageStore.open(animals)


def test_a_class_in_two_splits_is_refused_by_name(tmp_path: Path) -> None:
    classes = (*CLASSES[:3], ImageClass("ant", "novel"))
    with pytest.raises(UserError, match=r"animals.*'ant'.*disjoint.*keep each class in one split"):
        write(tmp_path / "animals", classes=classes)
    assert not (tmp_path / "animals").exists()


def test_a_class_without_images_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"animals.*'bee' has no image; remove it or add some"):
        write(tmp_path / "animals", labels=np.array([0, 0, 0, 0, 2, 2, 3, 3]))


def test_a_split_without_classes_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"animals: no class in split 'novel'"):
        write(tmp_path / "animals", classes=CLASSES[:3], labels=LABELS[:6])


@pytest.mark.parametrize("images", [pictures()[:-1], np.concatenate([pictures(), pictures()])])
def test_too_few_or_too_many_images_are_refused_and_leave_no_file(
    tmp_path: Path, images: np.ndarray
) -> None:
    with pytest.raises(UserError, match=r"animals: .* images .* 8 labels"):
        write(tmp_path / "animals", images)
    assert list((tmp_path / "animals").iterdir()) == []


def interrupted(images: np.ndarray) -> Iterator[np.ndarray]:
    yield from images[:3]
    raise KeyboardInterrupt


def test_an_interrupted_write_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "animals", interrupted(pictures()))
    assert list((tmp_path / "animals").iterdir()) == []


def test_an_interrupted_rewrite_leaves_the_old_store_whole(animals: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(animals, interrupted(pictures(seed=1)))
    assert np.array_equal(ImageStore.open(animals).images, pictures(seed=0))


def test_new_pixels_never_stand_under_an_old_description(
    animals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("epcore.data.store.write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        write(animals, pictures(seed=1))
    with pytest.raises(UserError, match=r"animals has no store\.json"):
        ImageStore.open(animals)
