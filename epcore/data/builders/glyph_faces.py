"""The typefaces that matplotlib ships, and the ink of one character in one of them."""

from functools import cache
from pathlib import Path

from PIL import Image, ImageFont

# An explicit list: a typeface that a later matplotlib adds must not change the pictures.
FACES = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-BoldOblique",
    "DejaVuSans-Oblique",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSansMono-BoldOblique",
    "DejaVuSansMono-Oblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-BoldItalic",
    "DejaVuSerif-Italic",
    "STIXGeneral",
    "STIXGeneralBol",
    "STIXGeneralBolIta",
    "STIXGeneralItalic",
)
FONT_SIZE = 72  # pixels per em of a drawn glyph: sharp enough for images of 84 pixels


@cache
def faces_of(character: str) -> list[str]:
    """The faces that have a character."""
    return [face for face in FACES if ord(character) in _code_points(face)]


@cache
def _code_points(face: str) -> set[int]:
    from matplotlib.ft2font import FT2Font

    return set(FT2Font(str(font_file(face))).get_charmap())


def ink(character: str, face: str) -> Image.Image:
    """The character's gray-scale picture ("L"), cropped to its ink."""
    mask = _font(face).getmask(character, "L")
    picture = Image.frombytes("L", mask.size, bytes(mask))
    return picture.crop(picture.getbbox())


def font_file(face: str) -> Path:
    """Where matplotlib keeps the typeface."""
    # Imported here, so that data sets other than glyphs do without matplotlib.
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{face}.ttf"


@cache
def _font(face: str) -> ImageFont.FreeTypeFont:
    # The basic layout draws the same with and without the optional Raqm library.
    return ImageFont.truetype(font_file(face), FONT_SIZE, layout_engine=ImageFont.Layout.BASIC)
