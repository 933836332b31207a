"""Embedded stand-in data: pictures of characters, drawn here and now, with no download.

Each picture has its own typeface, affine jitter, colors, background gradient, occluder and
noise. It depends on the seed, the character and its number within the class alone, so that
asking for more images of a class keeps those that there were.
"""

from functools import cache, lru_cache
from importlib import metadata

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from epcore.data.builders.glyph_classes import select_classes
from epcore.data.builders.glyph_faces import FACES, faces_of, ink
from epcore.data.contents import Contents
from epcore.data.datasets import GlyphPictures, MoreGlyphData
from epcore.data.sources import Sources

# The difficulty: Conv-4 reaches 55 to 75 % on 5-way 1-shot episodes of `mini` after the few epochs
# of the demo. Lengths are in image sides, colors in gray levels (0 to 255); a pair of numbers is
# the range of a uniform draw. Glyphs are lighter than their background: with either polarity a
# network spends the whole demo on learning to ignore it.
GLYPH_SIDE = 0.8  # longer side of the ink at scale 1
ROTATION = (-15.0, 15.0)  # degrees
SHEAR = (-0.25, 0.25)
SCALE = (0.7, 1.05)  # of each axis on its own
SHIFT = (-0.1, 0.1)
BACKGROUND = (0.0, 140.0)  # of each channel
CONTRAST = (60.0, 120.0)  # of all channels together, glyph over background
TINT = (-25.0, 25.0)  # of each channel of the glyph, on top of its contrast
GRADIENT = 30.0  # largest change of a channel from the image's middle to its edge
NOISE = (2.0, 14.0)  # standard deviation
BAR_HALF_WIDTH = (0.03, 0.09)
BLOB_RADIUS = (0.08, 0.18)

OVERSAMPLING = 2  # glyphs are moved about at twice the size, then reduced: smooth edges
Floats = NDArray[np.float64]


def contents(dataset: GlyphPictures, sources: Sources) -> Contents:
    """Classes in the order of `select_classes`, each with its split's number of images."""
    classes = select_classes(dataset.selection)
    counts = [getattr(dataset.images_per_class, c.split) for c in classes.values()]
    skip = dataset.skip if isinstance(dataset, MoreGlyphData) else 0
    images = (
        render_image(character, number, dataset.image_size, dataset.seed)
        for character, count in zip(classes, counts, strict=True)
        for number in range(skip, skip + count)
    )
    return Contents(
        classes=list(classes.values()),
        counts=counts,
        images=enumerate(images),
        facts={
            "faces": len(FACES),
            "matplotlib": metadata.version("matplotlib"),
            "pillow": PIL.__version__,
        },
    )


def render_image(character: str, number: int, image_size: int, seed: int) -> NDArray[np.uint8]:
    """A picture of the character, of its number from 0: RGB, `(image_size, image_size, 3)`."""
    rng = np.random.default_rng([seed, ord(character), number])
    background, glyph, occluder = _colors(rng)
    picture = background + _gradient(image_size, rng)
    picture = _cover(picture, _jittered_glyph(character, image_size, rng), glyph)
    picture = _cover(picture, _occluder(image_size, rng), occluder)
    picture += rng.uniform(*NOISE) * rng.standard_normal(picture.shape)
    return np.clip(picture, 0, 255).astype(np.uint8)


def _cover(picture: Floats, opacity: Floats, color: Floats) -> Floats:
    """Paints `color` `(3,)` over `picture` `(s, s, 3)` by `opacity` `(s, s)`, from 0 to 1."""
    return picture + opacity[:, :, None] * (color - picture)


def _colors(rng: np.random.Generator) -> Floats:
    """Background, glyph and occluder `(3, 3)`; the glyph is the lighter one of the first two."""
    background, occluder = rng.uniform(*BACKGROUND, 3), rng.uniform(0, 255, 3)
    glyph = background + rng.uniform(*CONTRAST) + rng.uniform(*TINT, 3)
    return np.stack([background, glyph.clip(0, 255), occluder])


@cache
def _coordinates(image_size: int) -> tuple[Floats, Floats]:
    """The pixels' centers, from -0.5 to 0.5: x `(1, s)` and y `(s, 1)`."""
    centers = (np.arange(image_size) + 0.5) / image_size - 0.5
    return centers[None, :], centers[:, None]


def _along(image_size: int, angle: float) -> Floats:
    """Each pixel's place `(s, s)` along a direction, 0 in the middle of the image."""
    x, y = _coordinates(image_size)
    place: Floats = x * np.cos(angle) + y * np.sin(angle)
    return place


def _gradient(image_size: int, rng: np.random.Generator) -> Floats:
    """A ramp of color `(s, s, 3)` to add to the background."""
    change = rng.uniform(-GRADIENT, GRADIENT, 3)
    return 2 * _along(image_size, rng.uniform(0, 2 * np.pi))[:, :, None] * change


def _occluder(image_size: int, rng: np.random.Generator) -> Floats:
    """Opacity `(s, s)` of a bar across the image or of a round blob."""
    angle = rng.uniform(0, 2 * np.pi)
    along, across = (_along(image_size, angle + turn) for turn in (0, np.pi / 2))
    place = rng.uniform(-0.4, 0.4, 2)
    if rng.random() < 0.5:
        outside = np.abs(along - place[0]) - rng.uniform(*BAR_HALF_WIDTH)
    else:
        outside = np.hypot(along - place[0], across - place[1]) - rng.uniform(*BLOB_RADIUS)
    opacity: Floats = np.clip(0.5 - outside * image_size, 0, 1)  # an edge one pixel wide
    return opacity


def _jittered_glyph(character: str, image_size: int, rng: np.random.Generator) -> Floats:
    """Opacity `(s, s)` of the character in a random face, moved at random."""
    faces = faces_of(character)
    face = faces[rng.integers(len(faces))]
    side = OVERSAMPLING * image_size
    glyph = _centered_glyph(character, face, side)
    moved = glyph.transform(
        (side, side), Image.Transform.AFFINE, _backward_map(side, rng), Image.Resampling.BILINEAR
    )
    return np.asarray(moved.reduce(OVERSAMPLING)) / 255


def _backward_map(side: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Where in the glyph's picture each pixel comes from: six coefficients, as Pillow wants."""
    angle, shear = np.deg2rad(rng.uniform(*ROTATION)), rng.uniform(*SHEAR)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    forward = rotation @ np.array([[1, shear], [0, 1]]) @ np.diag(rng.uniform(*SCALE, 2))
    backward = np.linalg.inv(forward)
    middle = np.full(2, side / 2)
    offset = middle - backward @ (middle + side * rng.uniform(*SHIFT, 2))
    return (*backward[0], offset[0], *backward[1], offset[1])


@lru_cache(maxsize=1024)  # labels come in runs of one class, so few glyphs are in use at a time
def _centered_glyph(character: str, face: str, side: int) -> Image.Image:
    """The ink in the middle of a square, its longer side `GLYPH_SIDE` of the square's."""
    picture = ink(character, face)
    square = Image.new("L", (side, side))
    factor = GLYPH_SIDE * side / max(picture.size)
    width, height = (max(1, round(factor * length)) for length in picture.size)
    resized = picture.resize((width, height), Image.Resampling.BILINEAR)
    square.paste(resized, ((side - width) // 2, (side - height) // 2))
    return square
