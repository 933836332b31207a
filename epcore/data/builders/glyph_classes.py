"""Which characters are the classes of the built-in data sets.

Homoglyphs (Latin A, Greek Alpha, Cyrillic A) are one picture, so a character that looks like one
of a smaller code point never becomes a class.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from epcore.data.builders.glyph_faces import faces_by_character, ink
from epcore.data.config import Split
from epcore.data.contents import ImageClass
from epcore.errors import UserError

Floats = NDArray[np.float64]

MIN_FACES = 12  # of 16: a class has enough typefaces to vary

COMPARED_FACES = ("DejaVuSans", "DejaVuSansMono", "DejaVuSerif")
COMPARED_SIZE = 24
# Dice distances between two glyphs, each stretched to a square and blurred a little, in the face
# where they are nearest. Set by looking at pairs in the order of their distance.
IDENTICAL = 0.005  # below: homoglyphs, and accents a pixel apart (caron and breve on E)
LOOKS_ALIKE = 0.055  # below: the cases of one letter (S s), accents of one width
LOOKS_SIMILAR = 0.08  # below: many a pair for a second look (H and Pe, D and O, E and F)


@dataclass(frozen=True)
class GlyphClass:
    """A class whose images all show one character."""

    character: str
    image_class: ImageClass


@dataclass(frozen=True)
class Draw:
    """`count` classes of a split, drawn at random from the characters that belong."""

    split: Split
    count: int
    belongs: Callable[[str], bool]
    group: str = ""


@dataclass(frozen=True)
class Selection:
    """Draws without replacement, from characters further apart than `distance`."""

    distance: float
    draws: tuple[Draw, ...]


def select_classes(selection: str, seed: int) -> list[GlyphClass]:
    """The classes of a built-in data set, the same for the same seed.

    - `mini` (64 base, 16 val, 20 novel) and `large` (389, 300, 311): letters, digits and symbols
      of all scripts.
    - `tiered` (90, 25, 35): Unicode blocks are super-classes, each wholly in one split.
    - `fine` (100, 50, 50): ten members of each of twenty families, a Latin letter with and
      without diacritics. Each family is wholly in one split. The families are fixed, the seed
      chooses their members.

    Raises:
        UserError: if the typefaces have too few characters for it.
    """
    wanted = SELECTIONS[selection]
    available = list(distinct_characters(wanted.distance))
    np.random.default_rng(seed).shuffle(available)
    classes = []
    for draw in wanted.draws:
        drawn = [character for character in available if draw.belongs(character)][: draw.count]
        if len(drawn) < draw.count:
            raise UserError(
                f"glyphs {selection!r}: {len(drawn)} characters for {draw.count} classes of "
                f"{draw.split} {draw.group}",
                "install the matplotlib that requirements.txt names",
            )
        available = [character for character in available if character not in drawn]
        classes += [_glyph_class(character, draw) for character in sorted(drawn)]
    return classes


def _glyph_class(character: str, draw: Draw) -> GlyphClass:
    name = f"u+{ord(character):04x} {unicodedata.name(character).lower()}"
    return GlyphClass(character, ImageClass(name, draw.split, draw.group))


@cache
def distinct_characters(distance: float) -> tuple[str, ...]:
    """The letters, digits and symbols that no earlier kept one is nearer to than `distance`."""
    characters, distances = _appearances()
    kept = np.ones(len(characters), bool)
    for index in range(len(characters)):
        if kept[index]:
            kept[index + 1 :] &= distances[index, index + 1 :] >= distance
    return tuple(character for character, keep in zip(characters, kept, strict=True) if keep)


@cache
def _appearances() -> tuple[list[str], Floats]:
    """The n candidates, and their distances in appearance `(n, n)`, from 0 to 1."""
    pictures = {}
    for character, faces in faces_by_character().items():
        if len(faces) >= MIN_FACES and set(COMPARED_FACES) <= set(faces) and _eligible(character):
            inks = [picture for face in COMPARED_FACES if (picture := ink(character, face))]
            if len(inks) == len(COMPARED_FACES):
                pictures[character] = [_stretched(picture) for picture in inks]
    by_face = np.array(list(pictures.values())).swapaxes(0, 1)
    return list(pictures), np.min([_dice_distances(vectors) for vectors in by_face], axis=0)


def _eligible(character: str) -> bool:
    """Letters, digits and symbols; no marks, and no small copies such as superscripts."""
    category = unicodedata.category(character)
    copied = unicodedata.decomposition(character).startswith(("<super>", "<sub>"))
    return category[0] in "LNS" and category not in ("Lm", "Sk") and not copied


def _stretched(picture: Image.Image) -> Floats:
    """Gray levels `(COMPARED_SIZE ** 2,)` of the ink, whatever its place, size and proportions."""
    square = picture.resize((COMPARED_SIZE, COMPARED_SIZE), Image.Resampling.BOX)
    # Blurred, because thin strokes half a pixel apart would have nothing in common.
    square = square.filter(ImageFilter.BoxBlur(1))
    # Whole numbers in float64 make the products exact, hence the same on every machine.
    return np.asarray(square, np.float64).ravel()


def _dice_distances(vectors: Floats) -> Floats:
    """`1 - 2ab / (aa + bb)` for all pairs of rows: `(n, d)` to `(n, n)`."""
    products = vectors @ vectors.T
    squares = np.diag(products)
    return 1 - 2 * products / (squares[:, None] + squares)


def _any(character: str) -> bool:
    return True


def _block(first: int, last: int) -> Callable[[str], bool]:
    return lambda character: first <= ord(character) <= last


def _family(letter: str) -> Callable[[str], bool]:
    name = unicodedata.name(letter)
    return lambda character: unicodedata.name(character).split(" WITH ")[0] == name


def _families(split: Split, letters: str) -> tuple[Draw, ...]:
    return tuple(Draw(split, 10, _family(letter), group=letter) for letter in letters)


SELECTIONS = {
    "mini": Selection(
        LOOKS_SIMILAR, (Draw("base", 64, _any), Draw("val", 16, _any), Draw("novel", 20, _any))
    ),
    "tiered": Selection(
        LOOKS_SIMILAR,
        (
            Draw("base", 25, _block(0x0041, 0x007A), "latin"),
            Draw("base", 15, _block(0x0250, 0x02AF), "phonetic"),
            Draw("base", 20, _block(0x0400, 0x052F), "cyrillic"),
            Draw("base", 15, _block(0x2200, 0x22FF), "mathematical operators"),
            Draw("base", 15, _block(0x2500, 0x257F), "box drawing"),
            Draw("val", 15, _block(0x0370, 0x03FF), "greek"),
            Draw("val", 10, _block(0x25A0, 0x25FF), "geometric shapes"),
            Draw("novel", 13, _block(0x0530, 0x058F), "armenian"),
            Draw("novel", 12, _block(0x10A0, 0x10FF), "georgian"),
            Draw("novel", 10, _block(0x2190, 0x21FF), "arrows"),
        ),
    ),
    # No letter is here in both cases: o and O with one accent are the same picture.
    "fine": Selection(
        IDENTICAL,
        _families("base", "aceinoutAN") + _families("val", "dlzEH") + _families("novel", "hrsyR"),
    ),
    # The groups are the subsets of ImageNet-FS, by the names of its published file.
    "large": Selection(
        LOOKS_ALIKE,
        (
            Draw("base", 193, _any, "base_classes_1"),
            Draw("base", 196, _any, "base_classes_2"),
            Draw("val", 300, _any, "novel_classes_1"),
            Draw("novel", 311, _any, "novel_classes_2"),
        ),
    ),
}
