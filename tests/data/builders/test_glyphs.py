"""The built-in data: which characters are classes, and what their pictures promise."""

from collections import Counter
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from packing import provenance
from PIL import Image, ImageDraw, ImageFont, ImageOps

from epcore.data import contact_sheet
from epcore.data.builders.glyph_classes import select_classes
from epcore.data.builders.glyph_faces import font_file
from epcore.data.builders.glyphs import contents, render_image
from epcore.data.config import Split
from epcore.data.datasets import GlyphData, MoreGlyphData
from epcore.data.sources import Sources
from epcore.data.store import ImageStore, write_store

COUNTS = {
    "mini": {"base": 64, "val": 16, "novel": 20},
    "tiered": {"base": 90, "val": 25, "novel": 35},
    "fine": {"base": 100, "val": 50, "novel": 50},
    "large": {"base": 389, "val": 300, "novel": 311},
}
IMAGES = {"base": 3, "val": 2, "novel": 2}


def build(directory: Path, selection: str, size: int, images: dict[str, int], seed: int) -> None:
    dataset = GlyphData(
        kind="glyphs", title="", selection=selection, image_size=size, images_per_class=images,
        seed=seed,
    )  # fmt: skip
    write_store(directory, contents(dataset, Sources({})), size)


each_selection = pytest.mark.parametrize("selection", COUNTS)


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    directory = tmp_path_factory.mktemp("glyphs") / "mini"
    build(directory, "mini", 28, IMAGES, seed=0)
    return ImageStore.open(directory)


@each_selection
def test_each_split_has_its_number_of_classes(selection: str) -> None:
    classes = select_classes(selection).values()
    assert Counter(c.split for c in classes) == COUNTS[selection]


@each_selection
def test_no_character_or_name_is_in_two_classes(selection: str) -> None:
    classes = select_classes(selection)
    assert len(classes) == sum(COUNTS[selection].values())
    assert len({c.name for c in classes.values()}) == len(classes)


@pytest.mark.parametrize("selection", ["tiered", "fine"])
def test_super_classes_are_wholly_in_one_split(selection: str) -> None:
    classes = select_classes(selection).values()
    by_split = [{c.group for c in classes if c.split == split} for split in get_args(Split)]
    assert all(by_split)
    assert "" not in set.union(*by_split)
    assert sum(map(len, by_split)) == len(set.union(*by_split))


def test_fine_classes_are_ten_to_a_letter_and_carry_its_name() -> None:
    classes = select_classes("fine").values()
    assert set(Counter(c.group for c in classes).values()) == {10}
    for image_class in classes:
        letter = image_class.group
        case = "capital" if letter.isupper() else "small"
        assert f"latin {case} letter {letter.lower()}" in image_class.name


FACE = "DejaVuSans-Bold"  # not one of those that were compared when they were chosen


def shape(character: str, side: int = 40) -> np.ndarray:
    """The character's ink, True or False `(side * side,)`, in its own proportions."""
    page = Image.new("L", (300, 300))
    font = ImageFont.truetype(font_file(FACE), 100)
    ImageDraw.Draw(page).text((100, 100), character, fill=255, font=font)
    square = ImageOps.pad(page.crop(page.getbbox()), (side, side))
    return np.asarray(square).ravel() > 127


@pytest.mark.parametrize(
    ("selection", "least"), [("mini", 0.15), ("tiered", 0.15), ("large", 0.08), ("fine", 0.025)]
)
def test_no_two_classes_look_alike(selection: str, least: float) -> None:
    characters = list(select_classes(selection))
    shapes = np.array([shape(character) for character in characters], float)
    common = shapes @ shapes.T
    areas = np.diag(common)
    different = 1 - common / (areas[:, None] + areas - common)  # of the ink that either has
    np.fill_diagonal(different, 1)
    closest = np.unravel_index(different.argmin(), different.shape)
    assert different.min() > least, [characters[label] for label in closest]


@pytest.mark.parametrize("homoglyphs", ["AΑА", "oοо", "−-─", "Oo0"])
def test_homoglyphs_are_at_most_one_class(homoglyphs: str) -> None:
    chosen = select_classes("large").keys()
    assert len(chosen & set(homoglyphs)) <= 1


@pytest.mark.parametrize("image_size", [28, 32, 84])
def test_images_are_square_color_bytes_of_the_size_asked_for(image_size: int) -> None:
    image = render_image("A", 0, image_size, seed=0)
    assert (image.shape, image.dtype) == ((image_size, image_size, 3), np.uint8)


def test_the_same_seed_draws_the_same_bytes_and_another_seed_others() -> None:
    classes = select_classes("mini")
    first, again, other = (
        np.stack([render_image(character, 0, 28, seed) for character in classes])
        for seed in (0, 0, 1)
    )
    assert first.tobytes() == again.tobytes()
    assert (first != other).any(axis=(1, 2, 3)).all()


def test_the_images_of_a_class_all_differ() -> None:
    images = {render_image("A", number, 28, seed=0).tobytes() for number in range(50)}
    assert len(images) == 50


def test_more_images_in_one_split_leave_every_other_image_as_it_was(
    mini: ImageStore, tmp_path: Path
) -> None:
    build(tmp_path / "mini", "mini", 28, IMAGES | {"base": 5}, seed=0)
    larger = ImageStore.open(tmp_path / "mini")
    for split in ("val", "novel"):
        old, new = mini.image_indices(split), larger.image_indices(split)
        assert np.array_equal(mini.images[old], larger.images[new])
    old = mini.images[mini.image_indices("base")].reshape(64, 3, -1)
    new = larger.images[larger.image_indices("base")].reshape(64, 5, -1)
    assert np.array_equal(old, new[:, :3])


def test_no_image_is_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without occluder and noise, what stands out from a plain background is the glyph.
    monkeypatch.setattr("epcore.data.builders.glyphs.GRADIENT", 0.0)
    monkeypatch.setattr("epcore.data.builders.glyphs.NOISE", (0.0, 0.0))
    monkeypatch.setattr(
        "epcore.data.builders.glyphs._occluder", lambda size, rng: np.zeros((size, size))
    )
    for character in select_classes("large"):
        gray = render_image(character, 0, 28, seed=0).mean(axis=2)
        background = np.median(np.concatenate([gray[0], gray[-1], gray[:, 0], gray[:, -1]]))
        standing_out = np.abs(gray - background) > 20
        assert 0.015 < standing_out.mean() < 0.75, character


def test_a_built_store_holds_every_image_asked_for(mini: ImageStore) -> None:
    assert mini.images.shape == (64 * 3 + 16 * 2 + 20 * 2, 28, 28, 3)
    assert all(
        count == IMAGES[mini.classes[label].split]
        for label, count in enumerate(np.bincount(mini.labels))
    )
    assert {"faces", "matplotlib", "pillow"} == provenance(mini).keys()


def test_the_contact_sheet_shows_the_images_of_all_splits(mini: ImageStore, tmp_path: Path) -> None:
    path = tmp_path / "sheet.png"
    contact_sheet.draw(mini, path)
    sheet = np.asarray(Image.open(path).convert("RGB")).astype(int)
    first = mini.images[0].astype(int)
    (_, left), *_ = np.argwhere(np.abs(sheet - first[0, 0]).max(axis=2) <= 1)
    images = (sheet[:, left + 20] < 250).any(axis=1)  # down through the first image of each class
    runs = np.diff(np.flatnonzero(np.diff(images.astype(int), prepend=0, append=0)))[::2]
    assert np.count_nonzero(runs > 40) == 3 * 8  # lower ones are titles


def test_more_glyphs_are_the_pictures_that_come_after_of_the_same_classes(tmp_path: Path) -> None:
    build(tmp_path / "all", "mini", 28, IMAGES | {"base": 5}, seed=0)
    more = MoreGlyphData(
        kind="more-glyphs", title="", selection="mini", image_size=28, seed=0, skip=2,
        images_per_class={"base": 3, "val": 1, "novel": 1},
    )  # fmt: skip
    write_store(tmp_path / "more", contents(more, Sources({})), 28)
    whole, rest = ImageStore.open(tmp_path / "all"), ImageStore.open(tmp_path / "more")
    assert whole.classes == rest.classes
    base = whole.images[whole.image_indices("base")].reshape(64, 5, -1)
    assert np.array_equal(base[:, 2:], rest.images[rest.image_indices("base")].reshape(64, 3, -1))


def test_the_large_selection_has_the_subsets_of_imagenet_fs() -> None:
    groups = Counter((c.split, c.group) for c in select_classes("large").values())
    assert groups == {
        ("base", "base_classes_1"): 193, ("base", "base_classes_2"): 196,
        ("val", "novel_classes_1"): 300, ("novel", "novel_classes_2"): 311,
    }  # fmt: skip
