"""Encoded pictures become arrays of one size, in several threads and in constant memory."""

import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import TypeVar

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from epcore.data.datasets import Pixels
from epcore.errors import UserError

# Of the kinds that Pillow knows, others run programs (EPS), or are no photographs.
FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
MOST_PIXELS = 89_478_485  # from which on Pillow warns; up to 12 bytes each while they are read
Read = TypeVar("Read")
# What EXIF calls the orientation of a picture, and what turns it upright.
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode(
    data: bytes, name: str, size: int, pixels: Pixels, *, upright: bool = False
) -> np.ndarray:
    """An encoded picture as RGB, uint8 `(size, size, 3)`.

    Gray, palette and CMYK pictures become RGB; what is transparent lies on white. Of 16 bits of
    color, or of gray with opacity, the upper 8 count.

    Args:
        data: the content of a picture file.
        name: what to call it in messages.
        size: height and width of the result in pixels.
        pixels: which part of the picture, and how it is resized.
        upright: turn the picture as its EXIF data say, as cameras mean it. The builders of
            published data sets did not.

    Raises:
        UserError: if it is no picture, damaged, too large, or plain gray of more than 8 bits.
    """
    return read(data, name, partial(to_array, size=size, pixels=pixels), upright=upright)


def read(
    data: bytes, name: str, use: Callable[[Image.Image], Read], *, upright: bool = False
) -> Read:
    """What `use` makes of an encoded picture; see `decode`.

    Raises:
        UserError: as for `decode`.
    """
    try:
        with Image.open(io.BytesIO(data), formats=_formats()) as picture:
            if (pixels_of := picture.width * picture.height) > MOST_PIXELS:
                raise ValueError(f"it has {pixels_of:,} pixels, {MOST_PIXELS:,} are the most")
            # Pillow would cut 16 bits of gray off at 255.
            if picture.mode.startswith(("I", "F")):
                raise ValueError("its pixels have more than 8 bits a channel")
            return use(_upright(picture) if upright else picture)
    except Exception as error:  # Pillow raises nearly anything
        unknown = isinstance(error, UnidentifiedImageError)  # its text names a place in memory
        reason = f"none of {', '.join(FORMATS)}" if unknown else str(error)
        reason = reason if data else "it is empty"
        problem = f"{name} cannot be read as an image ({reason})"
        raise UserError(f"{problem}", "replace or remove it") from None


@cache
def _formats() -> list[str]:
    """The formats of `FORMATS` that the installed Pillow reads."""
    Image.init()
    return [name for name in FORMATS if name in Image.OPEN]


def _upright(picture: Image.Image) -> Image.Image:
    """A picture turned as its EXIF orientation says.

    Pillow's own function would write all other EXIF data anew, which fails for odd ones.
    """
    turn = UPRIGHT.get(picture.getexif().get(ExifTags.Base.Orientation, 1))
    return picture if turn is None else picture.transpose(turn)


def to_array(picture: Image.Image, size: int, pixels: Pixels) -> np.ndarray:
    """A picture as RGB, uint8 `(size, size, 3)`."""
    picture = to_rgb(picture)
    if pixels.processing == "center-crop":
        side = min(picture.size)
        # Half less half, each rounded down, as TADAM did.
        x, top = (length // 2 - side // 2 for length in picture.size)
        picture = picture.crop((x, top, x + side, top + side))
    return np.asarray(picture.resize((size, size), Image.Resampling[pixels.filter.upper()]))


def to_rgb(picture: Image.Image) -> Image.Image:
    """A picture in RGB; what is transparent lies on white."""
    if picture.has_transparency_data:
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture.convert("RGBA"))
    return picture.convert("RGB")


def decode_all(
    pictures: Iterable[tuple[int, str, bytes]], size: int, pixels: Pixels, *, upright: bool = False
) -> Iterator[tuple[int, np.ndarray]]:
    """Decodes `(row, name, data)` to `(row, array)`, in order; see `decode`."""
    return read_all(pictures, partial(decode, size=size, pixels=pixels, upright=upright))


def read_all(
    pictures: Iterable[tuple[int, str, bytes]], read_one: Callable[[bytes, str], Read]
) -> Iterator[tuple[int, Read]]:
    """From `(row, name, data)` to `(row, read_one(data, name))`, in order.

    Pillow decodes and resizes outside Python's lock, so OMP_NUM_THREADS threads share the work;
    a few pictures per thread are in memory at a time.
    """
    setting = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]  # OpenMP takes a list as well
    workers = max(1, int(setting)) if setting.isdecimal() else os.cpu_count() or 1
    waiting: deque[tuple[int, Future[Read]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for row, name, data in pictures:
                waiting.append((row, pool.submit(read_one, data, name)))
                if len(waiting) > 4 * workers:
                    row_done, result = waiting.popleft()
                    yield row_done, result.result()
            while waiting:
                row_done, result = waiting.popleft()
                yield row_done, result.result()
        finally:
            pool.shutdown(cancel_futures=True)
